from proxy.concurrency.late_methods import make_methods_late

# as in Keyhole's own processes, before the first test imports a class of it
make_methods_late()

"""Pure numbers: noise, calibration, threshold tests, apportionment. numpy and scipy only."""

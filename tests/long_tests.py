"""The tests that `make test` leaves to `make test-thorough`: they start, kill or reload whole processes over and over,
sample, or ask another engine what a first one was asked.

Each took more than some tenths of a second of processor time when this was written, and something shorter of its kind
stays: that Keyhole starts, serves, reloads, loses a worker and dies rightly, on one of two ledgers or engines. A name
stands for a test with all its cases, a name with a bracket for those cases that begin so.
"""

LONG: dict[str, tuple[str, ...]] = {
    "accountant/store/test_killed.py": (
        "test_creating_that_dies_at_any_point_can_be_done_again[postgresql",
        "test_opening_that_dies_at_any_point_neither_loses_nor_adds[postgresql",
        *(
            f"test_a_verb_that_dies_at_any_point_is_there_whole_or_not_at_all[{verb}-"
            for verb in (
                "begin a window",
                "commit what continued",
                "end a monitor",
                "grant",
                "open a window",
                "prune",
                "read",
                "read a stored answer",
                "release",
                "reserve to continue",
                "settle",
                "settle untouched",
                "start a monitor",
            )
        ),
        *(
            f"test_a_verb_that_dies_at_any_point_is_there_whole_or_not_at_all[{verb}-postgresql"
            for verb in ("record a look",)
        ),
    ),
    "accountant/store/test_parallel_machine.py": (
        "test_processes_in_parallel_never_overspend_and_lose_nothing[postgresql",
    ),
    "accountant/store/test_processes.py": (
        "test_a_draw_outlives_its_process_and_is_not_drawn_anew[postgresql",
        "test_nothing_told_is_lost_when_processes_are_killed_at_random_moments[postgresql",
        "test_processes_never_take_more_than_there_is[postgresql",
        "test_processes_that_create_a_ledger_at_once_create_one[sqlite",
        "test_processes_that_look_at_one_window_record_each_look_once[postgresql",
        "test_what_is_spent_survives_sigkill[postgresql",
    ),
    "accountant/test_machine.py": ("test_any_interleaving[postgresql",),
    "accountant/verbs/test_verify_everything.py": (
        "test_every_cell_is_covered[postgresql",
        "test_rows_that_are_gone_are_missed[postgresql",
    ),
    "accountant/verbs/test_verify_at_work.py": ("test_verify_finds_no_fault_while_two_processes_write[postgresql",),
    "benchmarks/test_accounting_benchmark.py": ("test_the_benchmark_measures_both_stores[PostgreSQL",),
    "benchmarks/test_alarms_benchmark.py": ("test_every_kind_of_window_is_described",),
    "benchmarks/test_bounds_benchmark.py": ("test_the_page_and_its_image_have_everything",),
    "benchmarks/test_diagnostics_benchmark.py": (
        "test_areas_are_twice_as_near_as_the_published_ones",
        "test_images_are_drawn",
    ),
    "benchmarks/test_endpoint_benchmark.py": (
        "test_every_workload_goes_through_every_stage",
        "test_round_trips_cost_processor_time_of_the_processes_that_serve",
        "test_some_keys_are_returned",
        "test_the_report_is_printed_and_is_a_document",
    ),
    "benchmarks/test_experiments.py": (
        "test_every_experiment_measures_every_entrant",
        "test_the_page_says_which_taxi_trips_were_used",
        "test_the_page_the_images_and_the_files_are_written",
    ),
    "benchmarks/test_many_keys_benchmark.py": ("test_it_measures_every_stage",),
    "benchmarks/test_monitor_kills_benchmark.py": ("test_a_killed_window_alerts_as_one_that_nobody_killed",),
    "benchmarks/test_people_benchmark.py": (
        "test_every_world_has_40_questions_and_its_first_are_answered[bookings",
        "test_every_world_has_40_questions_and_its_first_are_answered[households",
    ),
    "benchmarks/test_random_kills_benchmark.py": (
        "test_each_kind_of_victim_was_killed_and_the_service_came_back",
        "test_no_answer_is_unpaid_and_everybody_is_told_one_answer",
        "test_runs_are_printed",
    ),
    "benchmarks/test_risk_benchmark.py": (
        "test_a_noisy_table_errs_less_than_thinning_and_thinning_hides_no_share",
        "test_images_are_drawn",
        "test_the_bars_are_met",
    ),
    "benchmarks/test_soak_benchmark.py": (
        "test_clients_did_what_clients_do",
        "test_no_descriptor_is_left_and_the_ledger_is_exact",
        "test_the_run_is_printed_and_is_a_document",
    ),
    "end_to_end/concurrency/test_races.py": (
        "test_an_auditor_never_sees_half_of_what_another_process_writes[postgres",
        "test_concurrent_questions_never_overspend_and_waste_nothing[postgres",
    ),
    "end_to_end/faults/test_crashes.py": (
        "test_killed_after_it_committed_the_answer_is_stored_and_paid_once[postgres",
        "test_killed_before_it_can_commit_the_reservation_stays_spent[postgres",
        "test_killed_before_it_can_reserve_nothing_is_spent",
        "test_a_release_that_is_killed_after_it_committed_is_told_again_and_paid_once",
        "test_a_release_that_is_killed_before_it_can_commit_stays_spent",
        "test_a_release_that_is_killed_before_it_can_reserve_costs_nothing",
        "test_a_release_that_is_killed_while_the_source_works_stays_spent[sqlite-bounds",
        "test_a_release_that_is_killed_while_the_source_works_stays_spent[sqlite-published",
        "test_a_release_that_is_killed_while_the_source_works_stays_spent[postgres",
        "test_killed_while_the_source_works_the_reservation_stays_spent",
        "test_a_table_that_is_killed_after_it_committed_is_written_again_and_paid_once",
        "test_rows_that_nobody_budgets_are_no_file_before_they_are_in_the_ledger[postgres",
        "test_rows_that_nobody_budgets_are_one_file_for_two_at_once",
    ),
    "end_to_end/faults/test_hanging.py": ("test_a_source_that_hangs_costs_nobody_anything_who_comes_then",),
    "end_to_end/faults/test_ledger_faults.py": ("test_a_ledger_that_goes_while_the_source_works_withholds_the_answer",),
    "end_to_end/faults/test_stopping.py": ("test_a_question_over_rest_is_answered_while_postgresql_lets_nobody_in",),
    "end_to_end/privacy/test_neighbours.py": ("test_odd_rows_cannot_be_told_from_their_absence[postgres",),
    "end_to_end/privacy/test_work_on_one_row.py": (
        "test_the_reported_attack_is_refused_before_data_are_touched[postgres",
    ),
    "mechanisms/audit/test_auditor.py": (
        "test_data_dependent_levels[True",
        "test_whole_questions_to_a_sparse_vector[factor1",
        *(f"test_every_mechanism_passes[{name}" for name in ("dppwlm", "mim]", "mim_progressive", "ppwlm")),
    ),
    "mechanisms/published/test_probe.py": (
        "test_the_auditor_passes_both_phases[probe]",
        "test_the_auditor_passes_both_phases[probe_naive",
        "test_the_auditor_would_notice_an_understated_loss",
    ),
    "planner/lower/test_joins.py": ("test_one_unit_changes_no_more_than_the_sensitivities_and_its_groups[postgres",),
    "project/test_compose.py": (
        "test_alerts_ask_for_metrics_that_there_are",
        "test_every_metric_of_keyhole_is_on_the_dashboard",
        "test_every_query_of_the_dashboard_finds_its_metric_and_labels",
        "test_the_health_check_is_python_that_asks_for_readiness",
        "test_the_readers_role_reads_and_nothing_else",
        "test_the_sample_can_be_asked_as_the_file_says",
    ),
    "project/test_long_tests.py": ("test_what_the_oldest_python_leaves_out_is_drawn_and_sized[not sized",),
    "proxy/cli/test_audit.py": (
        "test_an_audit_in_a_terminal_draws_a_bar",
        "test_an_audit_that_could_not_fail_is_no_success",
    ),
    "proxy/cli/test_check.py": ("test_a_check_says_in_a_terminal_what_it_is_doing",),
    "proxy/process/test_generations.py": (
        "test_workers_reload_beside_a_replaced_database_and_read_what_is_open",
        "test_it_is_told_to_end_while_a_question_of_before_runs",
        "test_many_reloads_leave_nothing_and_end_the_oldest_sessions_alone",
        "test_the_way_back_to_a_source_that_sessions_still_use_is_open",
        "test_what_waits_for_the_source_when_it_is_retired_costs_nothing",
    ),
    "proxy/process/test_own_postgresql.py": (
        "test_a_reload_goes_over_to_a_newer_one_without_dropping_a_session",
        "test_what_cannot_be_used_is_refused_before_anything_is_pinned",
    ),
    "proxy/process/test_reload.py": (
        "test_a_hangup_while_it_starts_is_seen_to_when_it_serves",
        "test_a_link_that_leads_elsewhere_names_another_ledger",
        "test_a_reload_changes_caps_and_analysts_and_drops_no_other_session[two workers",
        "test_another_password_ends_the_sessions_that_had_the_old_one[two workers",
        "test_limits_and_the_level_of_the_log_hold_from_then_on",
        "test_what_cannot_be_taken_changes_nothing",
    ),
    "proxy/process/test_shadow_watch.py": (
        "test_a_killed_shadow_is_replaced_and_nothing_is_paid_twice[two workers",
        "test_a_shadow_that_hangs_is_replaced_and_whoever_waits_for_it_is_told",
    ),
    "proxy/process/test_starting.py": (
        "test_a_parent_of_workers_that_is_killed_leaves_nothing",
        "test_a_terminal_that_interrupts_everybody_hears_no_complaint",
        "test_killed_while_the_shadow_is_made_it_leaves_nothing_either",
    ),
    "proxy/process/test_supervisor.py": (
        "test_a_worker_that_stands_still_keeps_nobody_from_reloading",
        "test_what_is_taken_runs_although_all_workers_die_meanwhile",
    ),
    "proxy/process/test_workers.py": (
        "test_a_dead_worker_is_replaced_and_the_other_sessions_go_on",
        "test_workers_end_with_their_parent",
    ),
    "proxy/release/test_killed.py": (
        "test_a_charged_release_that_dies_at_any_step_is_no_file_unpaid_and_is_paid_once",
        "test_a_publication_that_dies_at_any_step_is_no_file_without_an_event_and_is_drawn_once",
    ),
    "proxy/rest/test_answers.py": ("test_a_million_keys_take_no_memory_of_their_own[application/x-ndjson",),
    "proxy/rest/test_idempotency.py": (
        "test_whenever_the_first_dies_it_is_paid_once_at_most[before it is told",
        "test_whenever_the_first_dies_it_is_paid_once_at_most[before reserving",
        "test_whenever_the_first_dies_it_is_paid_once_at_most[before the data",
    ),
    "proxy/security/test_mock_users.py": ("test_what_users_are_told_stays_over_a_reload_and_restarts",),
    "proxy/shadow/test_guard.py": (
        "test_a_shadow_ends_however_its_keeper_ends[9",
        "test_who_is_making_the_shadow_ends_with_its_keeper[None",
    ),
    "proxy/sources/test_engine_settings.py": (
        "test_what_does_not_fit_into_memory_is_on_the_disk_without_a_readable_text",
    ),
    "proxy/sources/test_rollups.py": (
        "test_a_rollup_gives_what_the_scan_gave[temporary",
        "test_a_rollup_gives_what_the_scan_gave_for_totals_of_units[temporary",
        "test_another_version_reads_the_table_again[temporary",
        "test_one_rollup_serves_every_filter_and_restriction[temporary",
        "test_threads_at_once[temporary",
    ),
}

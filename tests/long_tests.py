"""The tests that `make test` leaves to `make test-thorough`: they start, kill or reload whole processes over and over,
sample, or ask another engine what a first one was asked.

Each took more than some tenths of a second of processor time when this was written, and something shorter of its kind
stays: that Keyhole starts, serves, reloads, loses a worker and dies rightly, on one of two ledgers or engines. A name
stands for a test with all its cases, a name with a bracket for those cases that begin so.
"""

LONG: dict[str, tuple[str, ...]] = {
    "accountant/balances/test_noise_paths.py": (
        "test_a_path_is_found_as_it_was_committed_on_its_version_alone[postgresql",
    ),
    "accountant/reports/test_burn_down.py": ("test_lines_end_where_the_report_is[150",),
    "accountant/reports/test_pages.py": (
        "test_a_report_is_that_of_the_whole_log_whoever_wrote_since_the_last[postgresql",
        "test_an_analysts_questions_and_those_of_an_id_are_the_logs[postgresql",
        "test_pages_together_are_the_whole_log[postgresql",
    ),
    "accountant/store/test_full_postgres.py": ("test_a_log_that_cannot_grow_stops_the_server_and_loses_nothing",),
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
    "accountant/store/test_ledger_copy.py": (
        "test_a_copy_has_every_row_verifies_and_goes_on_under_the_same_witness[postgresql",
        "test_a_copy_that_fails_in_the_middle_leaves_nothing[postgresql",
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
        "test_threads_never_take_more_than_there_is[postgresql",
        "test_what_is_spent_survives_sigkill[postgresql",
    ),
    "accountant/store/test_snapshot.py": ("test_reopening_from_a_snapshot_gives_identical_balances[postgresql",),
    "accountant/store/test_witness.py": ("test_processes_share_a_witness_whose_mark_only_grows[postgresql",),
    "accountant/test_machine.py": ("test_any_interleaving[postgresql",),
    "accountant/verbs/test_clearings.py": ("test_clearings_that_looks_did_not_make_are_not_verified[postgresql",),
    "accountant/verbs/test_idempotency.py": ("test_of_many_at_once_one_reserves[postgresql",),
    "accountant/verbs/test_in_flight.py": (
        "test_what_its_analyst_has_under_way_is_reserved_by_nobody_else_and_told_to_nobody_else[postgresql",
        "test_who_cannot_be_at_work_any_more_is_waited_for_no_longer[postgresql",
    ),
    "accountant/verbs/test_owner.py": ("test_a_grant_raises_its_cap_until_it_is_revoked[postgresql",),
    "accountant/verbs/test_verify_at_work.py": ("test_verify_finds_no_fault_while_two_processes_write[postgresql",),
    "accountant/verbs/test_verify_everything.py": (
        "test_every_cell_is_covered[postgresql",
        "test_rows_that_are_gone_are_missed[postgresql",
    ),
    "attacks/test_rows_of_one_person.py": (
        "test_a_person_with_many_rows_in_each_table_does_not_end_the_question[postgres",
        "test_nor_does_a_pattern_that_is_dear_on_the_texts_of_one_person[postgres",
    ),
    "benchmarks/test_accounting_benchmark.py": ("test_the_benchmark_measures_both_stores[PostgreSQL",),
    "benchmarks/test_alarms_benchmark.py": (
        "test_every_kind_of_window_is_described",
        "test_the_page_is_written_and_its_images_drawn",
    ),
    "benchmarks/test_bounds_benchmark.py": ("test_the_page_and_its_image_have_everything",),
    "benchmarks/test_diagnostics_benchmark.py": (
        "test_areas_are_twice_as_near_as_the_published_ones",
        "test_calibration_tells_a_wrong_model_at_2000",
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
    "benchmarks/test_looks_benchmark.py": ("test_every_shape_sees_the_watched_day",),
    "benchmarks/test_many_keys_benchmark.py": ("test_it_measures_every_stage",),
    "benchmarks/test_monitor_kills_benchmark.py": ("test_a_killed_window_alerts_as_one_that_nobody_killed",),
    "benchmarks/test_people_benchmark.py": (
        "test_every_world_has_40_questions_and_its_first_are_answered[bookings",
        "test_every_world_has_40_questions_and_its_first_are_answered[households",
    ),
    "benchmarks/test_planning_benchmark.py": (
        "test_the_large_formulas_have_sixty_four_literals_and_typical_ones_up_to_six",
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
    "benchmarks/test_streams_benchmark.py": ("test_images_are_drawn",),
    "clients/test_pandas.py": ("test_read_sql[postgresql+pg8000",),
    "clients/test_pgcli.py": ("test_the_program",),
    "clients/test_sqlalchemy.py": (
        "test_questions_over_reflected_tables[postgresql+asyncpg",
        "test_questions_over_reflected_tables[postgresql+pg8000",
    ),
    "end_to_end/answers/test_answers.py": (
        "test_a_stored_answer_beyond_the_own_cap_is_refused[postgres",
        "test_a_whole_table_is_one_group[postgres",
        "test_the_true_keys_are_returned_where_thresholds_are_far_away[postgres",
    ),
    "end_to_end/answers/test_asking_around.py": ("test_a_set_operation_is_one_question_and_one_charge[postgres",),
    "end_to_end/answers/test_bands.py": (
        "test_a_band_is_dragged_like_a_column[postgres",
        "test_a_stored_question_may_be_a_scorecard[postgres",
    ),
    "end_to_end/answers/test_groupings.py": (
        "test_a_household_counts_in_as_many_weeks_as_is_declared_of_weeks[postgres",
        "test_an_owner_tells_analysts_how_many_rows_bounds_leave_out[postgres",
        "test_without_a_bound_of_its_own_the_answer_says_what_is_left_out[postgres",
    ),
    "end_to_end/answers/test_joins.py": (
        "test_the_true_keys_are_returned_under_the_names_that_postgresql_gives[postgres",
    ),
    "end_to_end/answers/test_key_thresholds.py": (
        "test_the_promised_rates_hold_at_the_worst_case_of_every_group[NOT (count(*)",
    ),
    "end_to_end/answers/test_per_unit.py": ("test_the_true_keys_are_returned[postgres",),
    "end_to_end/answers/test_rankings.py": (
        "test_a_row_pays_once_and_a_patient_for_as_many_groups_as_are_returned[postgres",
        "test_equal_questions_are_one_and_others_are_not[postgres",
        "test_means_are_ranked_as_in_plain_sql[postgres",
    ),
    "end_to_end/answers/test_unit_joins.py": ("test_the_true_keys_are_returned[postgres",),
    "end_to_end/concurrency/test_asked_at_once.py": (
        "test_in_threads_and_processes_it_is_paid_once_and_read_once[postgres",
    ),
    "end_to_end/concurrency/test_races.py": (
        "test_an_auditor_never_sees_half_of_what_another_process_writes[postgres",
        "test_concurrent_questions_never_overspend_and_waste_nothing[postgres",
    ),
    "end_to_end/faults/test_closing_duckdb.py": ("test_a_process_survives_that_closes_right_after_a_timeout",),
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
    "end_to_end/many_keys/test_key_blocks.py": ("test_memory_grows_by_few_bytes_a_key",),
    "end_to_end/privacy/test_neighbours.py": ("test_odd_rows_cannot_be_told_from_their_absence[postgres",),
    "end_to_end/privacy/test_replaced_files.py": (
        "test_a_refresh_is_read_by_a_running_server_without_a_stop[*.parquet",
        "test_a_refresh_is_read_by_a_running_server_without_a_stop[.parquet",
        "test_new_rows_are_never_read_under_the_old_version[*.parquet",
        "test_new_rows_are_never_read_under_the_old_version[.parquet",
    ),
    "end_to_end/privacy/test_work_on_one_row.py": (
        "test_the_most_that_is_allowed_is_answered_the_same_with_the_row_and_without[postgres",
        "test_the_reported_attack_is_refused_before_data_are_touched[postgres",
    ),
    "end_to_end/spending/test_common_sums.py": (
        "test_another_threshold_is_charged_in_full[row",
        "test_it_is_answered_charged_and_told_again[row",
    ),
    "end_to_end/spending/test_levers.py": (
        "test_a_cap_of_the_session_can_be_taken_off",
        "test_a_difference_is_offered_a_wider_part_of_its_bounds",
        "test_an_or_in_where_is_kept_together",
        "test_no_tolerance_above_half_and_no_rate_above_a_fifth_is_offered",
        "test_two_settings_are_changed_where_none_is_enough",
    ),
    "end_to_end/spending/test_released_tables.py": ("test_a_curve_is_read_as_it_was_released[postgres",),
    "end_to_end/spending/test_reuse.py": ("test_a_dashboard_costs_what_its_first_refresh_costs[progressive",),
    "end_to_end/unit_paths/test_owners_walk.py": ("test_rows_count_for_the_customers_that_keys_lead_to[postgres",),
    "mechanisms/audit/test_auditor.py": (
        "test_data_dependent_levels[True",
        "test_predicates_on_shared_values[progressive-True",
        "test_sums_that_rows_move_by_parts[False",
        "test_whole_questions_to_a_sparse_vector[factor1",
        *(f"test_every_mechanism_passes[{name}" for name in ("dppwlm", "mim]", "mim_progressive", "ppwlm")),
    ),
    "mechanisms/audit/test_rankings.py": (
        "test_a_ranking_passes_and_could_have_failed[1",
        "test_a_ranking_passes_and_could_have_failed[2",
        "test_broken_rankings_are_flagged[told at the first look",
    ),
    "mechanisms/published/test_probe.py": (
        "test_the_auditor_passes_both_phases[probe]",
        "test_the_auditor_passes_both_phases[probe_gradual",
        "test_the_auditor_passes_both_phases[probe_naive",
        "test_the_auditor_would_notice_an_understated_loss",
    ),
    "mechanisms/published/test_share_carryover.py": ("test_the_contract_holds_on_worst_case_data[88",),
    "planner/lower/test_joins.py": ("test_one_unit_changes_no_more_than_the_sensitivities_and_its_groups[postgres",),
    "project/test_compose.py": (
        "test_alerts_ask_for_metrics_that_there_are",
        "test_every_metric_of_keyhole_is_on_the_dashboard",
        "test_every_query_of_the_dashboard_finds_its_metric_and_labels",
        "test_the_health_check_is_python_that_asks_for_readiness",
        "test_the_readers_role_reads_and_nothing_else",
        "test_the_sample_can_be_asked_as_the_file_says",
    ),
    "project/test_forked_run.py": (
        "test_the_end_of_the_run_ends_its_processes",
        "test_what_a_killed_process_has_forked_keeps_nobody_waiting",
    ),
    "project/test_long_tests.py": ("test_what_the_oldest_python_leaves_out_is_drawn_and_sized",),
    "proxy/cli/diagnose/test_diagnose.py": (
        "test_every_plot_and_method_reports_in_text_and_as_a_page[calibration-arguments2",
        "test_every_plot_and_method_reports_in_text_and_as_a_page[residuals-arguments3",
        "test_every_plot_and_method_reports_in_text_and_as_a_page[roc-arguments5",
        "test_bins_and_strips_are_tables_as_well[csv",
    ),
    "proxy/cli/test_audit.py": (
        "test_an_audit_in_a_terminal_draws_a_bar",
        "test_an_audit_that_could_not_fail_is_no_success",
    ),
    "proxy/cli/test_check.py": ("test_a_check_says_in_a_terminal_what_it_is_doing",),
    "proxy/cli/test_init.py": ("test_a_preset_admits_thirty_ordinary_questions[ad-hoc",),
    "proxy/cli/test_known_ledger.py": (
        "test_a_check_tells_which_table_is_broken_and_of_the_others[cities-unlink",
        "test_the_budget_needs_no_source[unlink-beds",
        "test_the_budget_needs_no_source[unlink-cities",
        "test_the_budget_needs_no_source[spoil-beds",
    ),
    "proxy/cli/test_ledger.py": ("test_a_postgresql_ledger_is_dumped_and_restored_with_the_documented_commands",),
    "proxy/cli/test_main.py": ("test_no_process_waits_for_what_others_alone_need",),
    "proxy/concurrency/test_long_statements.py": (
        "test_a_very_long_text_waits_for_another_and_a_short_one_does_not[explained over REST",
    ),
    "proxy/console/test_play.py": (
        "test_a_session_from_its_start_to_the_leader_board",
        "test_the_slider_tells_how_wrong_every_way_leaves_a_bot",
    ),
    "proxy/differential/test_extended_protocol.py": (
        "test_as_many_parameters_as_there_can_be",
        "test_large_values_and_long_statements",
    ),
    "proxy/endpoint/test_connection_limits.py": ("test_a_client_that_reads_nothing_is_not_read[not even SQL",),
    "proxy/monitors/test_at_once.py": (
        "test_rows_come_and_leave_and_come_again[duckdb",
        "test_what_comes_after_the_look_at_its_time_counts_in_none[duckdb",
    ),
    "proxy/pipeline/test_approval.py": (
        "test_a_tables_own_cap_holds_in_the_place_of_the_budgets[budget1",
        "test_a_tables_own_cap_holds_in_the_place_of_the_budgets[budget2",
    ),
    "proxy/pipeline/test_expected_time.py": ("test_the_pace_is_that_of_rows_the_engine_makes_up[duckdb",),
    "proxy/play/test_attackers.py": (
        "test_the_slider_says_what_an_epsilon_buys",
        "test_waiting_sharpens_what_noise_hides",
    ),
    "proxy/play/test_bots.py": (
        "test_error_falls_with_epsilon[TaskKind.NIGHT",
        "test_middle_errors_stand_still_from_one_look_to_the_next",
        "test_what_was_published_stays[Publishing.PEGASUS_SMOOTH",
        "test_what_was_published_stays[Publishing.HS_PEGASUS",
    ),
    "proxy/play/test_telling.py": (
        "test_feedback_has_the_true_series_and_is_json[TaskKind.NIGHT",
        "test_what_is_told_depends_on_what_was_published_alone[Publishing.HS_PEGASUS",
        "test_what_is_told_depends_on_what_was_published_alone[Publishing.PEGASUS]",
    ),
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
        "test_told_to_end_while_it_imports_it_removes_the_data_that_it_began",
    ),
    "proxy/process/test_supervisor.py": (
        "test_a_worker_that_stands_still_keeps_nobody_from_reloading",
        "test_what_is_taken_runs_although_all_workers_die_meanwhile",
    ),
    "proxy/process/test_workers.py": (
        "test_a_dead_worker_is_replaced_and_the_other_sessions_go_on",
        "test_workers_end_with_their_parent",
    ),
    "proxy/release/test_bounds.py": (
        "test_a_live_table_is_paid_each_time[duckdb",
        "test_it_is_paid_once_and_told_again_for_nothing[duckdb",
        "test_new_data_between_reservation_and_reading_are_not_told[duckdb",
        "test_of_two_that_want_the_last_budget_one_passes[duckdb",
        "test_what_a_refusal_proposes_fits[duckdb",
        "test_what_fails_after_the_reservation_stays_spent[duckdb",
        "test_who_asks_for_what_is_under_way_does_not_pay_for_it_again[duckdb",
        "test_with_a_delta_a_release_is_charged_in_full_and_says_how_many_questions_fit[duckdb",
        "test_in_whatever_order_they_are_named_they_are_one_release[duckdb",
        "test_the_ledger_says_how_it_was_asked_and_why[duckdb",
        "test_what_is_printed_can_be_pasted_into_the_policy[duckdb",
        "test_a_share_that_is_more_than_was_asked_is_rounded_up_and_no_other_is_promised[duckdb",
        "test_names_on_the_page_are_text[duckdb",
    ),
    "proxy/release/test_diagnosis.py": (
        "test_calibration_of_the_same_histogram_costs_nothing[duckdb",
        "test_every_method_is_kept_as_it_was_released[duckdb",
        "test_in_whatever_order_groups_are_named_it_is_one_release[duckdb",
        "test_it_is_paid_once_by_each_group_and_by_a_unit_in_all_of_them[duckdb",
        "test_the_ledger_says_how_it_was_asked_and_why[duckdb",
    ),
    "proxy/release/test_killed.py": (
        "test_a_charged_release_that_dies_at_any_step_is_no_file_unpaid_and_is_paid_once",
        "test_a_publication_that_dies_at_any_step_is_no_file_without_an_event_and_is_drawn_once",
    ),
    "proxy/release/test_publication.py": (
        "test_a_draft_without_an_event_is_written_anew[duckdb",
        "test_a_perturbation_is_drawn_once[duckdb",
        "test_in_whatever_order_columns_are_named_it_is_one_release[duckdb",
        "test_of_two_for_the_last_budget_one_is_paid[duckdb",
        "test_the_same_release_is_told_again_and_rows_are_made_of_it_for_nothing[duckdb",
    ),
    "proxy/rest/test_answers.py": (
        "test_a_million_keys_take_no_memory_of_their_own[application/x-ndjson",
        "test_a_million_keys_take_no_memory_of_their_own[application/json-",
    ),
    "proxy/rest/test_idempotency.py": (
        "test_whenever_the_first_dies_it_is_paid_once_at_most[before it is told",
        "test_whenever_the_first_dies_it_is_paid_once_at_most[before reserving",
        "test_whenever_the_first_dies_it_is_paid_once_at_most[before the data",
    ),
    "proxy/security/test_mock_users.py": ("test_what_users_are_told_stays_over_a_reload_and_restarts",),
    "proxy/security/tls/test_half_open.py": (
        "test_answers_come_after_the_end_of_what_is_sent[771-do_both",
        "test_answers_come_after_the_end_of_what_is_sent[771-end_sending",
        "test_answers_come_after_the_end_of_what_is_sent[772-do_both",
    ),
    "proxy/security/tls/test_logins.py": ("test_hundreds_of_logins_by_every_way_in",),
    "proxy/service/test_copies.py": ("test_what_is_refined_reads_the_same_rows_though_the_source_moves[on_database",),
    "proxy/service/test_pins.py": (
        "test_a_changed_public_table_waits_for_the_owner[ALTER",
        "test_a_changed_public_table_waits_for_the_owner[UPDATE",
    ),
    "proxy/service/test_relations.py": (
        "test_a_table_that_is_replaced_under_its_name_is_the_same[duckdb",
        "test_a_view_of_several_relations_beside_one_of_them_is_warned_of[duckdb",
        "test_pins_of_before_are_completed_by_the_next_check[duckdb",
    ),
    "proxy/service/test_size_doubts.py": (
        "test_a_table_that_suits_its_limits_is_not_warned_of[table",
        "test_a_table_that_suits_its_limits_is_not_warned_of[view",
        "test_what_does_not_suit_is_said_with_its_size[table",
        "test_what_does_not_suit_is_said_with_its_size[view",
    ),
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

# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is shown in a guest of every architecture: feature, test file, its tests.

The tests are those of tests/system, with shorter loops (GUEST in memprof_test.py); the table in
doc/architectures.md is made of the same rows.
"""
# What CI runs of it, by tests/guest/run --quick; of the walkers, which x86-64 runs all, the first one.
QUICK = ["attach", "exact counts", "stacks", "left as found", "killed recorder", "walkers"]
FEATURES = [
    ("attach", "test_left_as_found", ["LeftAsFound.test_let_go"]),
    ("exact counts", "test_exact", ["Exact.test_attached_in_the_middle",
                                    "Exact.test_run_from_the_start", "Exact.test_a32"]),
    ("stacks", "test_stacks", ["Stacks.test_frames", "Stacks.test_a32"]),
    ("interposers", "test_loaders", ["Loaders.test_interposer", "Loaders.test_interposer_a32"]),
    ("left as found", "test_left_as_found", ["LeftAsFound.test_identity",
                                             "LeftAsFound.test_stopped_stays_stopped"]),
    ("huge pages", "test_huge_stacks", ["HugeStacks.test_attach", "HugeStacks.test_leaks",
                                        "HugeStacks.test_stopped"]),
    ("100 attach cycles", "test_left_as_found", ["LeftAsFound.test_cycles"]),
    ("killed recorder", "test_left_as_found", ["LeftAsFound.test_killed_recorder"]),
    ("signals", "test_signals", ["Signals.test_stopped_job", "Signals.test_queued"]),
    ("system calls", "test_restart", ["Restart.test_other_threads", "Restart.test_carrier"]),
    ("seccomp", "test_sandbox", ["Sandbox.test_filters", "Sandbox.test_allow_list",
                                  "Sandbox.test_harmless_filter"]),
    ("fork", "test_fork", ["Fork.test_unharmed", "Fork.test_detach_restores_children",
                           "Fork.test_follow_fork"]),
    ("leaks", "test_leaks", ["Walk.test_one", "Walk.test_threads", "Leaks.test_cases",
                             "Leaks.test_hot"]),
    ("signal stacks", "test_signal_stacks", ["SignalStacks.test_modes", "SignalStacks.test_fiber"]),
    ("heap", "test_leaks", ["Heap.test_types", "Heap.test_sum"]),
    ("walkers", "test_walkers", ["Walkers.test_jemalloc", "Walkers.test_tcmalloc",
                                 "Walkers.test_mimalloc"]),
    ("recordings", "test_recordings", ["Recordings.test_x86_64", "Recordings.test_aarch64",
                                       "Recordings.test_arm", "Recordings.test_mips64"]),
    ("kernel way", "test_kernel_way", ["KernelWay.test_exact",
                                       "KernelWay.test_agrees_with_the_agent",
                                       "KernelWay.test_attach",
                                       "Thumb.test_refused"]),
    ("page faults", "test_page_faults", ["PageFaults.test_exact", "PageFaults.test_stacks",
                                         "PageFaults.test_attach"]),
]


def quick():
    """Return: the rows that CI runs."""
    return [(name, file, tests[:1] if name == "walkers" else tests) for name, file, tests in FEATURES
            if name in QUICK]

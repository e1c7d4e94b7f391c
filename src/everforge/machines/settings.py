"""Every number that machines/ decides by, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from everforge.wire.errors import InvalidInput

MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    # --- what a new machine gets when its owner says nothing
    image: str = "default"
    memory_mb: int = 1024  # pandas on a middling data set; an idle machine takes some 110 MB of it
    cpus: float = 2.0
    disk_mb: int = 5120
    processes: int = 64  # a forked Python takes some 10 MB at once in gVisor: more of them than the memory holds would only break the machine
    open_files: int = 4096
    timeout_seconds: float = 15.0  # ForeverVM's default
    idle_seconds: float = 300.0

    # --- what an owner may ask for
    memory_mb_max: int = 16_384
    memory_mb_min: int = 128  # below it the interpreter with numpy does not start
    cpus_max: float = 16.0
    disk_classes_mb: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048, 5120, 10_240, 20_480, 51_200)  # a template is kept for each that is used
    processes_max: int = 4096
    timeout_seconds_max: float = 24 * 3600.0
    idle_seconds_max: float = 7 * 24 * 3600.0
    code_bytes_max: int = 1 * MB
    tags_max: int = 64
    tag_bytes_max: int = 256
    metadata_bytes_max: int = 16_384
    env_bytes_max: int = 32_768
    forks_max: int = 100  # in one call: they share one save

    # --- queues and buffers
    queue_max: int = 100  # instructions and operations waiting for one machine
    output_bytes_max: int = 64 * MB  # per instruction; a million short lines fit
    result_bytes_max: int = 8 * MB
    deleted_kept_seconds: float = 3600.0  # how long the tape of a deleted machine stays for readers who are behind
    tape_recent_events: int = 512  # kept in memory for live readers; older ones come from the store

    # --- patience
    interrupt_grace_seconds: float = 3.0  # from the interrupt until the interpreter is killed
    kill_grace_seconds: float = 10.0  # from the kill until the sandbox counts as lost
    guest_answer_seconds: float = 30.0  # hello, frozen, thawed
    save_seconds: float = 600.0  # a save that an earlier server began: 50 GB on a slow disk
    wake_tries: int = 3
    wake_pause_seconds: float = 0.2  # doubled with every try
    save_retry_seconds: float = 10.0  # after a hibernation that failed, e.g. for want of disk
    admission_seconds: float = 30.0  # how long a wake waits for memory
    stop_grace_seconds: float = 5.0  # for running instructions when the server stops
    handover_seconds: float = 0.0  # an orderly stop leaves machines awake so long for the next server (an upgrade); 0 hibernates them at once

    # --- the host
    host_memory_mb: int = 0  # 0: three quarters of what the host has
    memory_overcommit: float = 4.0  # limits may add up to this much of it: an awake machine takes 110 MB of its 1024 on the average

    # --- images
    image_scrub_hours: float = 24.0  # between two looks at every byte of the images that machines use; 0: never. A minute of one processor, when idle
    image_scrub_first_seconds: float = 600.0  # from a start to the first look: a server that was just started has better things to do

    # --- points
    points_max: int = 100  # per machine, unnamed ones
    points_age_seconds: float = 30 * 24 * 3600.0
    points_bytes_max: int = 20 * 1024 * MB
    named_points_max: int = 100  # per machine; they go only when their owner says so
    pack_after_start_seconds: float = 30.0  # what an earlier server left whole: a start is busy enough with those who come back
    ready_sandboxes: int = 2  # restored from the default template and waiting, so that a new machine is there in milliseconds


def check(settings: MachineSettings) -> None:
    """The numbers against each other. Raises InvalidInput."""
    s = settings
    for holds, rule in (
        (s.memory_mb_min <= s.memory_mb <= s.memory_mb_max, "memory_mb lies between memory_mb_min and memory_mb_max"),
        (s.disk_classes_mb == tuple(sorted(s.disk_classes_mb)) and min(s.disk_classes_mb, default=0) > 0, "disk_classes_mb rise, from above 0"),
        (s.disk_mb in s.disk_classes_mb, "disk_mb is one of disk_classes_mb"),
        (0 < s.cpus <= s.cpus_max, "cpus lies between 0 and cpus_max"),
        (0 < s.processes <= s.processes_max, "processes lies between 0 and processes_max"),
        (0 < s.timeout_seconds <= s.timeout_seconds_max, "timeout_seconds lies between 0 and timeout_seconds_max"),
        (0 < s.idle_seconds <= s.idle_seconds_max, "idle_seconds lies between 0 and idle_seconds_max"),
        (0 < s.result_bytes_max <= 8 * MB, "result_bytes_max is at most 8 MB: a result, escaped as JSON, must fit in one message of the link"),
        (s.image_scrub_hours >= 0 and s.image_scrub_first_seconds >= 0, "image_scrub_hours and image_scrub_first_seconds are not below 0"),
        (s.queue_max > 0 and s.wake_tries > 0 and s.points_max > 0, "queue_max, wake_tries and points_max are above 0"),
    ):
        if not holds:
            raise InvalidInput(f"the settings do not fit together: {rule}")

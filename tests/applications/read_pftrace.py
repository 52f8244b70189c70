"""Reads a trace with Perfetto's published schema, and checks what its trace processor asks for.

Prints the time of each op and copy, and how much there is of everything, as JSON.
"""

import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())


def check_known(message):
    """Whether the schema has all fields that were written."""
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is not None:
            repeated = hasattr(value, "__len__")
            for inner in value if repeated else [value]:
                check_known(inner)


BOOTTIME, MONOTONIC = 6, 3


class Machine:
    """What the packets of one machine have told so far: its sequence knows nothing of the others'."""

    def __init__(self, sequence):
        self.sequence = sequence
        self.is_synchronised = False
        self.names, self.categories, self.noted_names, self.noted_texts = {}, {}, {}, {}
        self.specifications, self.contexts, self.tracks, self.processes = {}, {}, {}, set()

    def learn(self, described):
        for table, entries in [
            (self.names, described.event_names),
            (self.categories, described.event_categories),
            (self.noted_names, described.debug_annotation_names),
            (self.specifications, described.gpu_specifications),
        ]:
            table.update((entry.iid, entry.name) for entry in entries)
        texts = described.debug_annotation_string_values
        self.noted_texts.update((entry.iid, entry.str.decode()) for entry in texts)
        self.contexts.update((entry.iid, entry) for entry in described.graphics_contexts)

    def noted(self, event):
        def value_of(noted):
            if noted.HasField("string_value_iid"):
                return self.noted_texts[noted.string_value_iid]
            return noted.uint_value

        return {self.noted_names[it.name_iid]: value_of(it) for it in event.debug_annotations}

    def add(self, track):
        assert track.uuid not in self.tracks, "described once"
        assert not track.HasField("parent_uuid") or track.parent_uuid in self.tracks, "below a known one"
        self.tracks[track.uuid] = track
        if track.HasField("process"):
            assert track.process.pid not in self.processes, "each once"
            self.processes.add(track.process.pid)


def offset(sync, clock):
    """Between a machine's clock and the host's, as the trace processor estimates it."""
    rounds = []
    for pair in sync.synced_clocks:
        read = [{it.clock_id: it.timestamp for it in side.clocks} for side in (pair.client_clocks, pair.host_clocks)]
        assert all(side[BOOTTIME] and side[clock] for side in read), "0 is no reading"
        rounds.append([side[clock] for side in read])
    assert len(rounds) >= 2, "there and back"
    found = []
    for (client_1, host_1), (client_2, host_2) in zip(rounds, rounds[1:]):
        found += [(client_1 + client_2) // 2 - host_1, client_2 - (host_1 + host_2) // 2]
    return sum(found) // len(found)


machines, all_tracks, open_slices, free_at = {}, set(), {}, collections.Counter()
totals = collections.defaultdict(lambda: collections.Counter())
counts = collections.Counter()
of_machines = collections.defaultdict(lambda: collections.Counter())
flows, ended_flows = set(), set()

assert not trace.packet[0].HasField("machine_id"), "the host comes first"
for packet in trace.packet:
    check_known(packet)
    assert packet.machine_id or not packet.HasField("machine_id"), "the host has no number"
    if packet.machine_id not in machines:
        sequence = packet.trusted_packet_sequence_id
        assert sequence not in [machine.sequence for machine in machines.values()]
        assert packet.sequence_flags == 1, "the first packet begins the sequence"
        assert packet.trace_packet_defaults.timestamp_clock_id == MONOTONIC
        machines[packet.machine_id] = Machine(sequence)
    machine = machines[packet.machine_id]
    assert packet.trusted_packet_sequence_id == machine.sequence
    machine.learn(packet.interned_data)
    counts[packet.WhichOneof("data")] += 1
    if packet.HasField("clock_snapshot"):
        assert packet.machine_id == 0 and packet.clock_snapshot.primary_trace_clock == MONOTONIC
        machine.is_synchronised = True
    elif packet.HasField("remote_clock_sync"):
        assert packet.machine_id != 0
        assert all(offset(packet.remote_clock_sync, clock) == 0 for clock in (BOOTTIME, MONOTONIC))
        machine.is_synchronised = True
    assert machine.is_synchronised, "before any time"
    if packet.HasField("track_descriptor"):
        machine.add(packet.track_descriptor)
        assert packet.track_descriptor.uuid not in all_tracks
        all_tracks.add(packet.track_descriptor.uuid)
    elif packet.HasField("gpu_render_stage_event"):
        stage = packet.gpu_render_stage_event
        counts[machine.specifications[stage.hw_queue_iid]] += 1
        of_machines[packet.machine_id]["stages"] += 1
        assert machine.specifications[stage.stage_iid]
        assert machine.contexts[stage.context].pid in machine.processes | {0}
    elif packet.HasField("track_event"):
        event = packet.track_event
        assert event.track_uuid in machine.tracks
        name = machine.names[event.name_iid] if event.HasField("name_iid") else event.name
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_slices, "lanes do not overlap"
            assert packet.timestamp >= free_at[event.track_uuid], "in the order of their starts"
            kinds = [machine.categories[iid] for iid in event.category_iids]
            open_slices[event.track_uuid] = (packet.timestamp, name, kinds, machine.noted(event))
            flows.update(event.flow_ids)
            ended_flows.update(event.terminating_flow_ids)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            start, name, kinds, noted = open_slices.pop(event.track_uuid)
            free_at[event.track_uuid] = packet.timestamp
            counts["slices"] += 1
            if kinds:
                totals[kinds[0]][name] += noted.get("charged_ns", packet.timestamp - start)
                of_machines[packet.machine_id][kinds[0]] += 1
        elif event.type == TrackEvent.TYPE_COUNTER:
            of_machines[packet.machine_id]["counters"] += 1
for number, machine in machines.items():
    of_machines[number]["pids"] = sorted(machine.processes)
assert not open_slices and flows == ended_flows
counts["flows"] = len(flows)
print(json.dumps({"totals": totals, "counts": counts, "machines": of_machines}))

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


names, categories, noted_names, noted_texts, specifications = {}, {}, {}, {}, {}
contexts, tracks, open_slices, free_at = {}, {}, {}, collections.Counter()
totals = collections.defaultdict(lambda: collections.Counter())
counts = collections.Counter()
flows, ended_flows = set(), set()


def value_of(noted):
    if noted.HasField("string_value_iid"):
        return noted_texts[noted.string_value_iid]
    return noted.uint_value


assert trace.packet[0].sequence_flags == 1, "the first packet begins the sequence"
assert trace.packet[0].trace_packet_defaults.timestamp_clock_id == 3
for packet in trace.packet:
    check_known(packet)
    assert packet.trusted_packet_sequence_id == 1
    described = packet.interned_data
    for table, entries in [
        (names, described.event_names),
        (categories, described.event_categories),
        (noted_names, described.debug_annotation_names),
        (specifications, described.gpu_specifications),
    ]:
        table.update((entry.iid, entry.name) for entry in entries)
    noted_texts.update((entry.iid, entry.str.decode()) for entry in described.debug_annotation_string_values)
    contexts.update((entry.iid, entry) for entry in described.graphics_contexts)
    counts[packet.WhichOneof("data")] += 1
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks, "described once"
        assert not track.HasField("parent_uuid") or track.parent_uuid in tracks, "below a known one"
        tracks[track.uuid] = track
    elif packet.HasField("gpu_render_stage_event"):
        stage = packet.gpu_render_stage_event
        counts[specifications[stage.hw_queue_iid]] += 1
        assert specifications[stage.stage_iid] and stage.context in contexts
    elif packet.HasField("track_event"):
        event = packet.track_event
        assert event.track_uuid in tracks
        name = names[event.name_iid] if event.HasField("name_iid") else event.name
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_slices, "lanes do not overlap"
            assert packet.timestamp >= free_at[event.track_uuid], "in the order of their starts"
            kinds = [categories[iid] for iid in event.category_iids]
            noted = {noted_names[it.name_iid]: value_of(it) for it in event.debug_annotations}
            open_slices[event.track_uuid] = (packet.timestamp, name, kinds, noted)
            flows.update(event.flow_ids)
            ended_flows.update(event.terminating_flow_ids)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            start, name, kinds, noted = open_slices.pop(event.track_uuid)
            free_at[event.track_uuid] = packet.timestamp
            counts["slices"] += 1
            if kinds:
                totals[kinds[0]][name] += noted.get("charged_ns", packet.timestamp - start)
assert not open_slices and flows == ended_flows
counts["flows"] = len(flows)
print(json.dumps({"totals": totals, "counts": counts}))

//! Which descriptions stand in which block. In a recording of limited size blocks are used again, and
//! what stood there goes: a program may describe new graphs for ever, and whoever watches it must not
//! keep them all.

use super::super::tables::Tables;
use ggprof_spool::record::Record;
use hashbrown::HashMap;

#[derive(Debug, Default)]
pub(super) struct Described {
    /// The newest block that has it.
    block_of: HashMap<Key, u32>,
    in_block: HashMap<u32, Vec<Key>>,
}

/// What a description is of, by its numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Text(u32),
    Node(u32),
    Shape(u32),
    Fusion(u32, u32),
    Backend(u32),
    /// A backend, of a scheduler.
    Member(u32, u32),
}

impl Key {
    fn of(record: &Record) -> Option<Key> {
        Some(match record {
            Record::Text { id, .. } => Key::Text(*id),
            Record::Node { node, .. } => Key::Node(node.node),
            Record::GraphShape { shape, .. } => Key::Shape(*shape),
            Record::Fusion { shape, position, .. } => Key::Fusion(*shape, *position),
            Record::Backend(backend) => Key::Backend(backend.backend),
            Record::SchedulerBackend(member) => Key::Member(member.scheduler, member.backend),
            _ => return None,
        })
    }
}

impl Described {
    /// Takes a record of a block of descriptions over. What lasts is described again and again.
    pub(super) fn take(&mut self, record: Record, block: u32, tables: &mut Tables) {
        if let Some(key) = Key::of(&record) {
            let before = self.block_of.insert(key, block);
            if before != Some(block) {
                self.in_block.entry(block).or_default().push(key);
            }
            if before.is_some() && matches!(key, Key::Member(..)) {
                return;
            }
        }
        tables.take(record);
    }

    /// Lets go of what stands nowhere any more; whether there was anything.
    pub(super) fn forget(&mut self, blocks: &[u32], tables: &mut Tables) -> bool {
        let mut is_any = false;
        for block in blocks {
            for key in self.in_block.remove(block).unwrap_or_default() {
                if self.block_of.get(&key) == Some(block) {
                    self.block_of.remove(&key);
                    remove(key, tables);
                    is_any = true;
                }
            }
        }
        is_any
    }
}

fn remove(key: Key, tables: &mut Tables) {
    match key {
        Key::Text(id) => _ = tables.texts.remove(&id),
        Key::Node(node) => _ = tables.nodes.remove(&node),
        Key::Shape(shape) => _ = tables.shapes.remove(&shape),
        Key::Fusion(shape, position) => _ = tables.fusions.remove(&(shape, position)),
        Key::Backend(backend) => _ = tables.backends.remove(&backend),
        Key::Member(scheduler, backend) => tables
            .members
            .retain(|member| (member.scheduler, member.backend) != (scheduler, backend)),
    }
}

//! What sensors of the machine said.

use super::tables::Tables;
use crate::model::{LossKind, Quantity, Sensor, Trace};
use ggprof_spool::layout;
use hashbrown::HashMap;

pub(super) fn take(tables: &Tables, trace: &mut Trace) {
    let mut samples: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    for sample in &tables.samples {
        samples.entry(sample.sensor).or_default().push((sample.monotonic_ns, sample.value));
    }
    for (sensor, name) in tables.sensors.values() {
        let Some(quantity) = Quantity::of(sensor.quantity) else {
            trace.lose(LossKind::DamagedRecord, || "unknown kind of sensor".to_owned());
            continue;
        };
        let mut of_it = samples.remove(&sensor.sensor).unwrap_or_default();
        of_it.sort_by_key(|(ns, _)| *ns);
        let (times_ns, values) = of_it.into_iter().unzip();
        trace.sensors.push(Sensor {
            machine: 0,
            process: None,
            quantity,
            device: sensor.device,
            name: name.clone(),
            is_forbidden: sensor.flags & layout::SENSOR_FORBIDDEN != 0,
            every_ns: sensor.every_ns,
            times_ns,
            values,
        });
    }
}

//! Which file groups are being rewritten, from what compactors tell.

use firn_compactor::Event;

use super::records::{RunningGroup, Tale, Who};

/// Brings the running groups up to date with what a process told.
pub(super) fn note(groups: &mut Vec<RunningGroup>, by: &Who, tale: &Tale) {
    let drop_of = |groups: &mut Vec<RunningGroup>, ended: &[usize]| {
        groups.retain(|group| group.by != *by || !ended.contains(&group.group));
    };
    match tale {
        Tale::Compactor(Event::GroupStarted { group, files }) => {
            groups.push(RunningGroup { by: by.clone(), group: *group, files: files.clone() });
        }
        Tale::Compactor(Event::GroupDropped { group, .. }) => drop_of(groups, &[*group]),
        Tale::Compactor(Event::Committed { groups: landed, .. }) => drop_of(groups, landed),
        // A run begins, or the process is no more.
        Tale::Compactor(Event::Planned { .. }) | Tale::Crashed | Tale::Ended(_) => {
            groups.retain(|group| group.by != *by);
        }
        _ => {}
    }
}

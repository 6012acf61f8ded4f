import type { AdminAction, AdminContext, AdminResource } from '../../app/admin/declaration.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import { adminErrors } from '../../screens/errors.ts';

const NAME = 'delete-selected';

/** The resource with an action that deletes a selection, where single records can be deleted. */
export function withBulkDelete(resource: AdminResource): AdminResource {
  const { removable, actions } = resource;
  if (!removable || resource.remove === undefined || actions.some(({ name }) => name === NAME)) return resource;
  return { ...resource, actions: [...actions, bulkDelete(resource)] };
}

/** Each record as its own page would delete it, checked by a dry run where that changes nothing but databases. */
function bulkDelete(resource: AdminResource): AdminAction {
  const { singular, label, plural = label, removal = 'This cannot be undone.', shows, dryRunsRemoval = shows !== undefined } = resource;
  const noun = [singular.toLowerCase(), plural.toLowerCase()] as const;
  return {
    name: NAME,
    label: { one: 'Delete', many: 'Delete selected' },
    tone: 'bad',
    on: 'selection',
    needs: 'remove',
    confirm: removal,
    confirmLabel: 'Delete',
    ...(dryRunsRemoval ? { dryRun: 'deleted' } : {}),
    async run(context: AdminContext, ids) {
      const undone: string[] = [];
      let action: string | undefined;
      const result = await adminEach(context, ids, async (id) => {
        const record = await resource.read(context, id);
        if (record === null) throw adminErrors.record_not_found();
        if (!record.removable) throw adminErrors.not_removable();
        const undo = (await resource.remove?.(context, id))?.undo;
        action = undo?.action ?? action;
        undone.push(...(undo?.ids ?? []));
      });
      return { ...adminDone(result, noun, 'deleted'), ...(action === undefined ? {} : { undo: { action, ids: undone } }) };
    },
  };
}

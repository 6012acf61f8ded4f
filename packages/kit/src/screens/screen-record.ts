import type { AdminContext } from '../app/admin/declaration.ts';
import type { AdminRecord, AdminSection } from '../app/admin/sections.ts';
import type { AdminRange, AdminRow, AdminState } from '../app/admin/shapes.ts';
import type { AdminAccess, AdminRecordRow } from '../crud/staff/admin-access.ts';
import { siteActionsOf } from './named-actions.ts';
import { computedFacts, relatedSection } from './record-facts.ts';
import { formOf } from './record-form.ts';
import type { Plan } from './screen-plan.ts';
import { isDeleted, keyOf, loadedOf, rowsOf } from './screen-rows.ts';
import type { ScreenRow } from './screen-words.ts';

/** The action that brings deleted records back. */
export const RESTORE = 'restore';
const DELETED_REASON = 'The record is deleted. Restore it first.';

/** What can be done to the records of a list at all. */
interface Reading {
  readonly plan: Plan;
  readonly context: AdminContext;
  readonly access: AdminAccess;
  readonly record: AdminRecordRow;
  readonly isEditable: boolean;
  readonly isRemovable: boolean;
  readonly restores: boolean;
}

/** The page of a record. */
export async function recordOf({ plan, context, access, record, ...may }: Reading, asked?: AdminRange): Promise<AdminRecord> {
  const { words } = plan;
  const loaded = await loadedOf(plan, context, [record.row]);
  const row: ScreenRow = { ...record.row, ...loaded[0] };
  const shows = await namesSeenBy(access);
  const key = keyOf(plan, row);
  const [shown] = (await rowsOf(context, plan, [{ key, item: record.item }], shows, plan.drawn, loaded)) as readonly [AdminRow];
  const deleted = isDeleted(plan, row);
  const facts = await factsOf(plan, context, { record, row, values: shown.values, deleted, shows });
  const related = deleted ? [] : await Promise.all(record.related.map((rows) => relatedSection(context, rows)));
  const range = asked ?? words.sections?.find((each) => each.range !== undefined)?.range;
  const sections: AdminSection[] = [];
  for (const { load } of words.sections ?? [])
    sections.push(...[(await load({ context, id: key, row: row as never, range: range ?? '30d' })) ?? []].flat());
  const state = words.state === undefined ? undefined : (shown.values[words.state] as AdminState | null | undefined);
  const notice = await words.notice?.(row, context);
  const view = deleted ? null : (words.viewAs?.(row) ?? null);
  const defaults = deleted ? undefined : await words.defaults?.(row, context);
  return {
    ...shown,
    ...(deleted ? { state: { value: 'deleted', tone: 'neutral' } } : typeof state === 'object' && state !== null ? { state } : {}),
    ...(notice === undefined || notice === null ? {} : { notice }),
    ...(view === null ? {} : { view }),
    sections: [facts, ...related, ...sections],
    ...(words.sections?.some((each) => each.range !== undefined) === true ? { range: range as AdminRange } : {}),
    ...(may.isEditable && !deleted && words.editable?.(row, context) !== false ? { form: await formOf(context, plan, row, shows) } : {}),
    ...(deleted ? { actions: may.restores ? [RESTORE] : [] } : await actionsOn(plan, context, access, row)),
    ...(deleted && may.isRemovable ? { refused: { edit: DELETED_REASON, remove: DELETED_REASON } } : {}),
    ...(defaults === undefined ? {} : { defaults }),
    removable: may.isRemovable && !deleted && (typeof words.removable !== 'function' || words.removable(row, context)),
  };
}

interface Facts {
  readonly record: AdminRecordRow;
  readonly row: ScreenRow;
  readonly values: AdminRow['values'];
  readonly deleted: boolean;
  readonly shows: (name: string) => boolean;
}

async function factsOf(plan: Plan, context: AdminContext, { record, row, values: shown, deleted, shows }: Facts): Promise<AdminSection> {
  const { words, shape, fields, factsIfSet } = plan;
  const own = await words.values?.(row, context);
  const more = deleted || words.facts !== undefined ? { columns: [], values: {} } : computedFacts(plan, record);
  const values: AdminRow['values'] = { ...shown, ...more.values, ...own };
  const isKnown = (name: string) => fields.includes(name) || record.computed.includes(name);
  const facts = plan.facts.filter(
    ({ name }) => (shows(name) || !isKnown(name) || name in (words.cells ?? {})) && (!factsIfSet.has(name) || !isEmpty(values[name])),
  );
  return { kind: 'facts', title: headingOf(shape.singular), columns: [...facts, ...more.columns], values };
}

function headingOf(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** The names of the fields that this staff member sees. */
export async function namesSeenBy(access: AdminAccess): Promise<(name: string) => boolean> {
  const seen = await access.columns();
  return (name) => seen.has(name);
}

/** The actions that make sense on a record for this staff member, and why not the others. */
async function actionsOn(
  plan: Plan,
  context: AdminContext,
  access: AdminAccess,
  row: ScreenRow,
): Promise<Pick<AdminRecord, 'actions' | 'unavailable'>> {
  const { words, resource } = plan;
  const meant = async (names: readonly string[]): Promise<string[]> => {
    const found: string[] = [];
    for (const name of names)
      if ((await words.actions?.find((each) => each.name === name)?.when?.(row, context)) !== false) found.push(name);
    return found;
  };
  const own = await meant((words.actions ?? []).flatMap((each) => ('run' in each ? [each.name] : [])));
  if (words.readOnly === true) return { actions: own };
  const hasTransitions = Object.keys(resource.options.transitions ?? {}).length > 0;
  const named = [
    ...(hasTransitions ? await access.transitions(row) : []),
    ...(await access.actions(row)).filter((name) => Object.hasOwn(siteActionsOf(plan), name)),
  ];
  return {
    actions: [...(await meant(named)), ...own],
    ...(hasTransitions ? { unavailable: await access.refusedTransitions(row) } : {}),
  };
}

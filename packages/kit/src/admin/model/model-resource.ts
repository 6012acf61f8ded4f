import type { AdminAction, AdminContext, AdminResource } from '../../app/admin/declaration.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import type { AdminRow } from '../../app/admin/shapes.ts';
import { type AnyResource, isResource } from '../../crud/declare/resource.ts';
import { scopeColumn } from '../../crud/declare/scope-rule.ts';
import type { SearchBackend } from '../../crud/declare/search-backend.ts';
import type { Model } from '../../db/declare/model.ts';
import { adminColumn, adminField, unfillableColumns, shownColumns, writableColumns } from '../../app/admin/model-columns.ts';
import type { App } from '../../app/declare/module.ts';
import { mountedResourceOf } from '../../crud/serve/controller.ts';
import { computedValues, expandedRecord } from './expanded-record.ts';
import { exportRows } from './export-rows.ts';
import { type ModelResourceOptions, type Plan, planOf, type Row } from './model-plan.ts';
import { closing } from '../wire/closed-fields.ts';
import { isDeleted, isShown, listRows, outputOf, rowOf } from './model-rows.ts';
import { databaseOf, modelStore, type RowStore } from './model-store.ts';
import { referenceTitles } from './reference-titles.ts';
import { resourceStore, namedActions } from './resource-store.ts';
import { accessOf, unlessRefused } from '../staff/staff-access.ts';
import { requireArguments } from '../../options/read-options.ts';
import { rule, isMembers } from '../../options/value-rule.ts';

export type { ModelResourceOptions } from './model-plan.ts';

/**
 * List, search, filter, create, edit and remove for a table of your own: `admin: { resources: [modelResource(orderResource)] }`. With a resource
 * of `kit/crud`, its rules and its pipeline hold here too, and its transitions are actions; a model without one is shown and changed whole.
 *
 * @example
 * ```ts
 * const shop: Module = { name: 'shop', models: [orders], admin: { resources: [modelResource(orderResource, { group: 'Shop' })] } };
 * createApp({ modules: [accounts(), shop, admin()], mount });
 * ```
 */
export function modelResource(source: Model | AnyResource, options: ModelResourceOptions = {}): AdminResource {
  requireArguments(
    'modelResource()',
    { source },
    { source: rule('a model or a resource of kit/crud', (value) => isMembers(value) && ('table' in value || isResource(value))) },
  );
  const listed = adminResource(source, options);
  // Its controllers say what a search looks into; which there are is known when the app is.
  return {
    ...listed,
    installedIn(app) {
      if (!isResource(source) || options.search !== undefined) return listed;
      const { backend, columns } = declaredSearch(app as App, source);
      if (backend !== null) return adminResource(source, options, backend);
      return columns.length === 0 ? listed : adminResource(source, { ...options, search: columns });
    },
  };
}

interface DeclaredSearch {
  /** The first that a controller names. */
  readonly backend: SearchBackend | null;
  /** What the controllers search by their texts. */
  readonly columns: readonly string[];
}

/** How the mounted controllers of the resource search. */
function declaredSearch(app: App, resource: AnyResource): DeclaredSearch {
  const declared = app.controllers.flatMap((controller) => {
    const mounted = mountedResourceOf(controller);
    return mounted?.resource === resource && mounted.options.search !== undefined ? [mounted.options.search] : [];
  });
  const shown = new Set(shownColumns(resource.model as Model).map(({ name }) => name));
  const { hidden = [] } = resource.options as { readonly hidden?: readonly string[] };
  const columns = declared.flatMap((search) => ('columns' in search ? search.columns : search));
  return {
    backend: declared.find((search): search is SearchBackend => 'columns' in search) ?? null,
    columns: [...new Set(columns)].filter((name) => shown.has(name) && !hidden.includes(name)),
  };
}

function adminResource(source: Model | AnyResource, options: ModelResourceOptions, search: SearchBackend | null = null): AdminResource {
  const plan = planOf(source, options, search);
  const { model, resource } = plan;
  // Rows that only a module writes are shown; what a resource opens of them can be edited.
  const isManaged = hasManagedRows(plan);
  const readOnly = options.readOnly === true || (isManaged && plan.writable.length === 0);
  const isRemovable = !readOnly && !isManaged;
  const store = resource === null ? modelStore(plan) : resourceStore(plan, resource);
  const transitions = resource === null || readOnly ? [] : namedActions(resource);
  const restore = plan.softDeletes && !readOnly ? [restoreAction(plan, store)] : [];
  const bulkEdit = readOnly || plan.writable.length === 0 ? [] : [bulkEditAction(plan, store)];
  const actions = [...transitions, ...(options.actions ?? []), ...bulkEdit, ...restore];
  const creation = creationOf(plan, readOnly);
  return {
    ...plan.shape,
    auditedAs: resource?.name ?? model.name,
    table: model.name,
    shows: source,
    refers: refersOf(plan),
    ...(options.files === undefined ? {} : { files: options.files }),
    related: Object.entries(refersOf(plan)).map(([filter, to]) => ({ to, filter })),
    ...(options.auditReads === true ? { auditReads: true } : {}),
    creation,
    editable: !readOnly,
    removable: isRemovable,
    ...(plan.softDeletes ? { removal: 'The record is hidden from lists and can be restored.' } : {}),
    actions,
    exports: FORMATS,
    async *exportRows(context, query, format) {
      yield* exportRows(databaseOf(plan, context), plan, await store.view(context), query, format);
    },
    ...(store.importRows === undefined || 'refused' in creation
      ? {}
      : {
          imports: {
            formats: FORMATS,
            columns: plan.creatable.map(({ name }) => name),
            ...(plan.uniqueColumn === undefined ? {} : { by: plan.uniqueColumn }),
          },
          importRows: store.importRows.bind(store),
        }),
    async list(context, query) {
      const db = databaseOf(plan, context);
      const view = await store.view(context);
      const { rows, ...page } = await listRows(db, plan, view, query);
      const titles = await referenceTitles(context, db, plan.shown, rows);
      const computed = await computedValues(context, plan, rows);
      const items = rows.map((row): AdminRow => {
        const { id, title, values } = rowOf(context, plan, view, row, titles);
        return { id, title, values: Object.assign({}, values, computed.get(id)) };
      });
      return { ...page, items };
    },
    closedFields: (context) => closedFields(context, plan),
    async titles(context, ids) {
      const view = await store.view(context);
      const titles = new Map<string, string>();
      for (const id of ids) {
        const row = await store.find(context, id);
        if (row !== undefined) titles.set(id, rowOf(context, plan, view, row).title);
      }
      return titles;
    },
    async read(context, id) {
      const row = await store.find(context, id);
      if (row === undefined) return null;
      const view = await store.view(context);
      const titles = await referenceTitles(context, databaseOf(plan, context), plan.shown, [row]);
      const shown = rowOf(context, plan, view, row, titles);
      const deleted = isDeleted(plan, row);
      const columns = plan.shown.filter(({ name }) => isShown(view, name)).map((column) => adminColumn(column, false));
      const more = await expandedRecord(context, plan, shown.id, deleted);
      return {
        ...shown,
        ...(deleted ? { state: { value: 'deleted', tone: 'neutral' } as const } : {}),
        sections: [
          {
            kind: 'facts',
            title: plan.shape.singular,
            columns: [...columns, ...more.columns],
            values: { ...shown.values, ...more.values },
          },
          ...more.sections,
        ],
        ...(readOnly || deleted ? {} : { form: formOf(plan, row, (name) => isShown(view, name), await closedFields(context, plan, row)) }),
        actions: deleted ? restore.map(({ name }) => name) : await possible(context, plan, row, transitions.length > 0, options.actions),
        ...(deleted || transitions.length === 0 || resource === null
          ? {}
          : { unavailable: await (await accessOf(resource, context)).refusedTransitions(row) }),
        ...(deleted && !readOnly ? { refused: { edit: DELETED_REASON, remove: DELETED_REASON } } : {}),
        removable: isRemovable && !deleted,
      };
    },
    ...('refused' in creation
      ? {}
      : {
          async create(context: AdminContext, fields: Row) {
            const { id, title } = rowOf(context, plan, await store.view(context), await store.create(context, fields));
            return { message: `${title} created.`, id };
          },
        }),
    ...(readOnly
      ? {}
      : {
          async update(context: AdminContext, id: string, fields: Row, version: number | null) {
            const row = await store.update(context, id, fields, version);
            return { message: `${rowOf(context, plan, await store.view(context), row).title} saved.`, id };
          },
        }),
    ...(!isRemovable
      ? {}
      : {
          async remove(context: AdminContext, id: string) {
            const view = await store.view(context);
            const { title } = rowOf(context, plan, view, await store.remove(context, id));
            return { message: `${title} removed.`, ...(plan.softDeletes ? { undo: { action: RESTORE, ids: [id] } } : {}) };
          },
        }),
  };
}

/** Every column that could be written is guarded, and no hook of a resource takes over deletions. */
function hasManagedRows({ model, resource }: Plan): boolean {
  const isGuarded = Object.values(model.columns).some(({ settings }) => settings.guarded === true);
  return isGuarded && writableColumns(model).length === 0 && resource?.options.hooks?.destroy === undefined;
}

/** Columns that refer to other tables. */
function refersOf({ shown }: Plan): Readonly<Record<string, string>> {
  return Object.fromEntries(
    shown.flatMap(({ name, settings: { reference } }) =>
      reference === undefined ? [] : [[name, typeof reference.target === 'string' ? reference.target : reference.target().name]],
    ),
  );
}

function creationOf({ model, resource, creatable, given }: Plan, readOnly: boolean): AdminResource['creation'] {
  if (readOnly) return { refused: 'This list is read-only.' };
  if (Object.values(resource?.options.once ?? {}).some(({ on }) => on.includes('create')))
    return { refused: 'A new record has a value that is shown once. Create it where it is used.' };
  const settable = new Set(creatable.map(({ name }) => name));
  // The hook of a resource may set what the form does not.
  const missing = resource?.options.hooks?.create === undefined ? unfillableColumns(model).filter((name) => !settable.has(name)) : [];
  const version = resource?.options.version as string | undefined;
  const unset = missing.filter((name) => name !== version && name !== tenantOf(resource));
  if (unset.length > 0) return { refused: `The application creates these: it sets ${unset.join(', ')} itself.` };
  return { fields: creatable.map((column) => Object.assign(adminField(column, true), given.has(column.name) ? { required: true } : {})) };
}

function tenantOf(resource: AnyResource | null): string | undefined {
  return scopeColumn(resource?.options.tenant);
}

/** By the name of a column that this member of staff cannot write: the rule that says so. Without a row, of the form of a new one. */
async function closedFields(context: AdminContext, { resource, writable }: Plan, row?: Row): Promise<Readonly<Record<string, string>>> {
  if (resource === null) return {};
  const access = await accessOf(resource, context);
  const names = writable.map(({ name }) => name);
  const closed = await unlessRefused(() => access.closedColumns(names, row), new Map<string, string>());
  return Object.fromEntries([...closed].map(([name, permission]) => [name, closedReason(resource, permission)]));
}

function closedReason({ name }: AnyResource, permission: string): string {
  return `You cannot change this field. Only users who pass ${permission} can: the resource ${name} says so in writableBy().`;
}

function formOf({ model, resource, writable }: Plan, row: Row, shows: (name: string) => boolean, closed: Readonly<Record<string, string>>) {
  const json = outputOf(model, row);
  const shown = writable.filter(({ name }) => shows(name));
  const version = resource?.options.version as string | undefined;
  return {
    fields: shown.map((column) => closing(adminField(column, false), closed)),
    values: Object.fromEntries(shown.map(({ name }) => [name, json[name]])),
    ...(version === undefined ? {} : { version: Number(row[version]) }),
  };
}

/** The transitions that this member of staff may make from the row's state, and the declared actions. */
async function possible(
  context: AdminContext,
  { resource }: Plan,
  row: Row,
  isOffered: boolean,
  more: readonly AdminAction[] = [],
): Promise<readonly string[]> {
  const transitions = resource === null || !isOffered ? [] : await (await accessOf(resource, context)).transitions(row);
  return [...transitions, ...more.map(({ name }) => name)];
}

const FORMATS = ['csv', 'jsonl'] as const;
const BULK_EDIT = 'edit-selected';

/** The same values for every selected record. Each is a change of its own: checked, recorded, and refused alone. */
function bulkEditAction({ shape, writable, resource }: Plan, store: RowStore): AdminAction {
  const rules = (resource?.options.fields ?? {}) as Readonly<Record<string, { readonly visibleTo?: object } | undefined>>;
  return {
    name: BULK_EDIT,
    label: 'Edit selected',
    tone: 'neutral',
    on: 'selection',
    needs: 'update',
    sets: true,
    dryRun: 'changed',
    confirm: 'The values are replaced, and the old ones are in the audit log only.',
    confirmLabel: 'Change',
    // The list is the same for everybody: what only some may see is edited on its own page.
    fields: writable.filter(({ name }) => rules[name]?.visibleTo === undefined).map((column) => adminField(column, false)),
    async run(context, ids, values) {
      const result = await adminEach(context, ids, async (id) => {
        await store.update(context, id, values, null);
      });
      return adminDone(result, [shape.singular.toLowerCase(), shape.label.toLowerCase()], 'changed');
    },
  };
}

const RESTORE = 'restore';
const DELETED_REASON = 'The record is deleted. Restore it first.';

function restoreAction({ shape }: Plan, store: RowStore): AdminAction {
  return {
    name: RESTORE,
    label: { one: 'Restore', many: 'Restore selected' },
    tone: 'neutral',
    on: 'selection',
    dryRun: 'restored',
    confirm: 'Restores the record and everything deleted with it.',
    async run(context, ids) {
      const result = await adminEach(context, ids, (id) => store.restore(context, id));
      return adminDone(result, [shape.singular.toLowerCase(), shape.label.toLowerCase()], 'restored');
    },
  };
}

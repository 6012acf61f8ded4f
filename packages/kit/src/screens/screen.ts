import type { AdminAction, AdminContext, AdminFile, AdminListQuery, AdminResource } from '../app/admin/declaration.ts';
import { adminDone, adminEach } from '../app/admin/each.ts';
import { inSentence, shownColumns } from '../app/admin/model-columns.ts';
import type { AdminFileFormat } from '../app/admin/shapes.ts';
import type { App } from '../app/declare/module.ts';
import { type AnyResource, isResource, type Resource } from '../crud/declare/resource.ts';
import type { SearchBackend } from '../crud/declare/search-backend.ts';
import { mountedResourceOf } from '../crud/serve/controller.ts';
import type { Model } from '../db/declare/model.ts';
import type { Columns, RowOf } from '../db/declare/rows.ts';
import { requireArguments } from '../options/read-options.ts';
import { isMembers, rule } from '../options/value-rule.ts';
import { givenOnce, namedActions, presenceOf, secretOf } from './named-actions.ts';
import { idsOfTitles } from './reference-titles.ts';
import { changesOf, closedFields, fieldOf } from './record-form.ts';
import { RowStore, unlessMissing } from './row-store.ts';
import { listPage, listQuery } from './screen-list.ts';
import { screenOverview } from './screen-overview.ts';
import { filteredColumn, type Plan, planOf } from './screen-plan.ts';
import { namesSeenBy, recordOf, RESTORE } from './screen-record.ts';
import { isNamedById, keyOf, rowsOf, titleOf } from './screen-rows.ts';
import type { ScreenForms, ScreenOptions, ScreenRow } from './screen-words.ts';

/**
 * A list of the admin site for the rows of a resource: its columns, filters, search, forms, actions, files and history follow from the resource, with the
 * audience `staff`; the words are given here. For a model without a resource, staff see and change every row.
 *
 * @example
 * ```ts
 * const shop: Module = { name: 'shop', models: [orders], admin: { resources: [screen(orderResource, { group: 'Shop' })] } };
 * createApp({ modules: [accounts(), shop, admin()], mount });
 * ```
 */
export function screen<C extends Columns>(
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever else the resource declares
  source: Model<C> | Resource<C, any, any, any, any, any>,
  words: ScreenOptions<RowOf<C>> = {},
): AdminResource {
  requireArguments(
    'screen()',
    { source },
    { source: rule('a model or a resource of kit/crud', (value) => isMembers(value) && ('table' in value || isResource(value))) },
  );
  const [given, options] = [source, words as ScreenOptions];
  const listed = adminResource(given, options);
  // Its controllers say what a search looks into; which there are is known when the app is.
  return {
    ...listed,
    installedIn(app) {
      if (!isResource(given)) return listed;
      const found = withoutRemoved(app as App, given, options.search === undefined ? searching(app as App, given) : listed);
      return options.overview === undefined ? found : { ...found, overview: screenOverview(app as App, given, found, options.overview) };
    },
  };

  function searching(app: App, resource: AnyResource): AdminResource {
    const { backend, columns } = declaredSearch(app, resource);
    if (backend !== null) return adminResource(given, options, backend);
    return columns.length === 0 ? listed : adminResource(given, { ...options, search: columns });
  }
}

function withoutRemove(listed: AdminResource): AdminResource {
  const others: { -readonly [K in keyof AdminResource]: AdminResource[K] } = { ...listed };
  delete others.remove;
  return others;
}

/** What all controllers of the resource have removed, `operations: { destroy: false }`, the site does not offer either. */
function withoutRemoved(app: App, resource: AnyResource, listed: AdminResource): AdminResource {
  const mounted = app.controllers.flatMap((controller) => {
    const found = mountedResourceOf(controller);
    return found?.resource === resource ? [found.options.operations ?? {}] : [];
  });
  const isRemoved = (operation: string): boolean => mounted.length > 0 && mounted.every((each) => each[operation] === false);
  const mayRemove = listed.removable && !isRemoved('destroy');
  return {
    ...(mayRemove ? listed : withoutRemove(listed)),
    removable: mayRemove,
    actions: listed.actions.filter(({ name }) => !isRemoved(name)),
    async read(context, id, range) {
      const record = await listed.read(context, id, range);
      if (record === null) return null;
      return {
        ...record,
        actions: record.actions.filter((name) => !isRemoved(name)),
        removable: record.removable && !isRemoved('destroy'),
      };
    },
  };
}

/**
 * An alias of {@link screen}.
 *
 * @example
 * ```ts
 * const shop: Module = { name: 'shop', models: [orders], admin: { resources: [modelResource(orderResource, { group: 'Shop' })] } };
 * ```
 */
export const modelResource = screen;

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

function adminResource(source: Model | AnyResource, words: ScreenOptions, search: SearchBackend | null = null): AdminResource {
  const plan = planOf(source, words, search);
  const { resource, model } = plan;
  const { creation, isEditable, isRemovable } = changesOf(plan);
  const store = new RowStore(plan);
  const refers = { ...refersOf(plan), ...words.refers };
  const noun = [inSentence(plan.shape.singular), inSentence(plan.shape.plural ?? plan.shape.label)] as const;
  const restores = plan.softDeletes && isRemovable;
  const own = (words.actions ?? []).flatMap((each): AdminAction[] => {
    if (!('run' in each)) return [];
    const { when: _, ...action } = each;
    return [action];
  });
  const actions = [
    ...(words.readOnly === true ? [] : namedActions(plan)),
    ...own,
    ...(isEditable && plan.writable.length > 0 && words.bulkEdit !== false ? [bulkEditAction(plan, store, noun)] : []),
    ...(restores ? [restoreAction(store, noun)] : []),
  ];
  const createsRows = words.creation === undefined && words.forms === undefined && 'fields' in creation;
  const presence = presenceOf(plan);
  return {
    ...plan.shape,
    auditedAs: words.auditedAs ?? resource.name,
    table: model.name,
    shows: resource,
    ...(plan.isBare ? { brings: resource } : {}),
    refers,
    ...(words.files === undefined ? {} : { files: words.files }),
    related: [...relatedOf(plan), ...(words.related ?? [])],
    ...(words.isRestricted === true ? { isRestricted: true } : {}),
    ...(isNamedById(plan) ? { isNamedById: true } : {}),
    ...(words.suggestions === undefined ? {} : { suggestions: words.suggestions }),
    ...(words.auditReads === true || (isMembers(resource.options.audit) && resource.options.audit.reads === true)
      ? { auditReads: true }
      : {}),
    ...(presence.length === 0 ? {} : { needsPresence: presence }),
    creation,
    editable: isEditable,
    ...(isEditable && words.forms === undefined ? { edits: editsOf(plan) } : {}),
    removable: isRemovable,
    ...(restores && plan.shape.removal === undefined ? { removal: 'The record is hidden from lists and can be restored.' } : {}),
    actions,
    ...(words.exports === false
      ? {}
      : {
          exports: FORMATS,
          async *exportRows(context: AdminContext, query: AdminListQuery, format: AdminFileFormat) {
            yield* (await store.access(context)).export(listQuery(plan, context, query, true), format);
          },
        }),
    ...(plan.isBare || !createsRows || words.imports === false
      ? {}
      : {
          imports: importsOf(plan),
          importRows: (context: AdminContext, file: AdminFile) => store.importRows(context, creation.fields, file),
        }),
    async list(context, query) {
      const access = await store.access(context);
      const { items, ...page } = await listPage(access, plan, context, query);
      const shows = await namesSeenBy(access);
      return { ...page, items: await rowsOf(context, plan, items, shows, plan.cells) };
    },
    isFollowed: async (context) => (await store.access(context)).isFollowed,
    async *news(context, id, following) {
      yield* (await store.access(context)).news(id, following);
    },
    closedFields: (context) => (isEditable || createsRows ? closedFields(context, plan) : Promise.resolve({})),
    async titles(context, ids) {
      const access = await store.access(context);
      const shows = await namesSeenBy(access);
      const fields =
        words.load !== undefined || words.cells?.[plan.title] !== undefined
          ? plan.listed.filter(shows)
          : shows(plan.title)
            ? [plan.title]
            : [];
      const rows = await rowsOf(context, plan, await access.byKeys(ids, plan.softDeletes ? 'any' : 'live', fields), shows, []);
      return new Map(rows.map(({ id, title }) => [id, title]));
    },
    idsOfTitles: async (context, titles) => idsOfTitles(await store.access(context), plan, titles),
    async read(context, id, range) {
      const access = await store.access(context);
      const isListed = (of: { readonly name: string }, column: string): boolean => context.refersTo(of.name, column) === model.name;
      const record = await unlessMissing(() => access.record(id, plan.softDeletes ? 'any' : 'live', isListed));
      return record === undefined ? null : recordOf({ plan, context, access, record, isEditable, isRemovable, restores }, range);
    },
    ...(words.forms === undefined ? {} : { hasOwnForm: true as const, validate: formRules(store, words.forms) }),
    ...('fields' in creation
      ? words.creation !== undefined && 'create' in words.creation
        ? { create: words.creation.create, ...(words.creation.validate === undefined ? {} : { validate: words.creation.validate }) }
        : {
            async create(context: AdminContext, fields: ScreenRow) {
              const given = new Map<string, string | null>();
              const row = await store.create(context, fields, words.once === undefined ? undefined : given);
              const { id, title } = await named(context, row);
              return {
                message: `${title} created.`,
                id,
                ...(givenOnce(resource.options).has('create') ? secretOf(words, row, given) : {}),
              };
            },
          }
      : {}),
    ...(isEditable
      ? {
          async update(context: AdminContext, id: string, fields: ScreenRow, version: number | null) {
            const { title } = await named(context, await store.update(context, id, fields, version));
            return { message: `${title} saved.`, id };
          },
        }
      : {}),
    ...(isRemovable
      ? {
          async remove(context: AdminContext, id: string) {
            const { title } = await named(context, await store.remove(context, id));
            return { message: `${title} deleted.`, ...(restores ? { undo: { action: RESTORE, ids: [id] } } : {}) };
          },
        }
      : {}),
  };

  /** What a row is called by those who may see its title. */
  async function named(context: AdminContext, row: ScreenRow): Promise<{ readonly id: string; readonly title: string }> {
    const id = keyOf(plan, row);
    return { id, title: titleOf(context, plan, row, id, await namesSeenBy(await store.access(context))) };
  }
}

function formRules(store: RowStore, forms: ScreenForms): NonNullable<AdminResource['validate']> {
  return (context, fields, id) => store.validate(context, forms, fields, id);
}

/** Columns that refer to other tables. */
function refersOf({ shown }: Plan): Readonly<Record<string, string>> {
  return Object.fromEntries(
    shown.flatMap(({ name, settings: { reference } }) =>
      reference === undefined ? [] : [[name, typeof reference.target === 'string' ? reference.target : reference.target().name]],
    ),
  );
}

/** Columns of the list that are fields of the form, except those whose input needs room. */
function editsOf({ shape, writable }: Plan): readonly string[] {
  const open = new Set(writable.filter(({ settings: { kind } }) => kind !== 'json').map(({ name }) => name));
  return shape.columns.map(({ name }) => name).filter((name) => open.has(name));
}

/** The page of what a record refers to lists it, by the filter of the column. */
function relatedOf(plan: Plan): NonNullable<AdminResource['related']> {
  const refers = refersOf(plan);
  return plan.filters.flatMap((filter) => {
    const column = filteredColumn(filter);
    const to = column === undefined ? undefined : refers[column];
    return column === undefined || to === undefined ? [] : [{ to, filter: filter.shape.name, column }];
  });
}

function importsOf({ creatable, uniqueColumn }: Plan): NonNullable<AdminResource['imports']> {
  return {
    formats: FORMATS,
    columns: creatable.map(({ name }) => name),
    ...(uniqueColumn === undefined ? {} : { by: uniqueColumn }),
  };
}

const FORMATS = ['csv', 'jsonl'] as const;
const BULK_EDIT = 'edit-selected';

/** The same values for every selected record. Each is a change of its own: checked, recorded, and refused alone. */
function bulkEditAction({ words, writable, resource }: Plan, store: RowStore, noun: readonly [string, string]): AdminAction {
  const rules = (resource.options.fields ?? {}) as Readonly<Record<string, { readonly visibleTo?: object } | undefined>>;
  return {
    name: BULK_EDIT,
    label: 'Edit selected',
    tone: 'neutral',
    on: 'selection',
    needs: 'update',
    sets: true,
    dryRun: 'changed',
    confirm: 'The old values are only in the audit log.',
    confirmLabel: 'Change',
    // The list is the same for everybody: what only some may see is edited on its own page.
    fields: writable.filter(({ name }) => rules[name]?.visibleTo === undefined).map((column) => fieldOf(words, column, false)),
    async run(context, ids, values) {
      const result = await adminEach(context, ids, async (id) => {
        await store.update(context, id, values, null);
      });
      return adminDone(result, noun, 'changed');
    },
  };
}

function restoreAction(store: RowStore, noun: readonly [string, string]): AdminAction {
  return {
    name: RESTORE,
    label: { one: 'Restore', many: 'Restore selected' },
    tone: 'neutral',
    on: 'selection',
    dryRun: 'restored',
    confirm: 'Restores the record and everything deleted with it.',
    async run(context, ids) {
      const result = await adminEach(context, ids, (id) => store.restore(context, id));
      return adminDone(result, noun, 'restored');
    },
  };
}

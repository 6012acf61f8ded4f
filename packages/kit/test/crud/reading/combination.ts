import { z } from 'zod';
import { modelResource } from '../../../src/admin/index.ts';
import type { Module } from '../../../src/app/declare/module.ts';
import { grants, objectActions, type ObjectActions } from '../../../src/contrib/grants/index.ts';
import {
  type CountMode,
  count,
  CrudController,
  filter,
  fullText,
  many,
  max,
  one,
  resource,
  sum,
  visibleTo,
} from '../../../src/crud/index.ts';
import { createTable, migration, model, softDelete, t, versioned } from '../../../src/db/index.ts';
import { allowAny, isAuthenticated, isOwner, isStaff } from '../../../src/permissions/index.ts';
import type { Chosen } from './covering-array.ts';

/** Every option that changes reading, with what it may be. */
export const factors = {
  // The resource.
  tenant: ['no', 'yes'],
  /** `inherited`: by grants on the area above the row, too. */
  scope: ['unscoped', 'owner', 'unless', 'rows', 'anonymous', 'grants', 'granted', 'inherited', 'exempt'],
  deletion: ['hard', 'soft'],
  version: ['no', 'yes'],
  /** Who sees `margin`: everyone, or staff, while others get no property or null. */
  margin: ['open', 'omit', 'null'],
  /** Who sees `note`: everyone, or the owner of the row. */
  note: ['open', 'omit', 'null'],
  code: ['shown', 'hidden'],
  computed: ['none', 'own', 'ruled', 'hidden', 'related'],
  /** The target of the to-one relation: who sees its rows, and its `code`. */
  area: ['unscoped', 'tenant', 'ruled'],
  /** The to-many relation. */
  parts: ['plain', 'limited', 'scoped'],
  // The controller.
  output: ['all', 'narrow'],
  lookup: ['id', 'slug'],
  parent: ['no', 'yes'],
  style: ['cursor', 'offset'],
  count: ['exact', 'none', 'upTo', 'default'],
  pageSize: [3, 7],
  etag: ['optional', 'no'],
  searchBy: ['contains', 'fullText'],
  usualOrdering: ['none', '-size', 'title'],
  // The request.
  ordering: ['none', 'size', '-size', 'title,-at', '-price', 'margin', '-slug'],
  filter: ['none', 'own', 'list', 'null', 'related', 'relatedCode', 'custom', 'margin', 'two'],
  search: ['none', 'one', 'two'],
  deleted: ['no', 'only'],
  fields: ['none', 'plain', 'computed', 'margin', 'note', 'code', 'area', 'missing'],
  expand: ['none', 'area', 'parts', 'both'],
} as const;
export type Combination = Chosen<typeof factors>;

/** What a narrow `output` shows: some columns, and the first of the computed fields. */
export const narrowOutput = (combination: Combination): readonly string[] => [
  'id',
  'slug',
  'title',
  'size',
  ...Object.keys(requiredBy(combination)).slice(0, 1),
];
/** Rows that grants give to callers; with `exempt`, staff see all of them. */
export const isGranted = ({ scope }: Combination): boolean => ['grants', 'granted', 'inherited', 'exempt'].includes(scope);
/** Staff may restore rows, where deleted rows are kept and addressed by their key. */
export const hasRestore = ({ deletion, lookup }: Combination): boolean => deletion === 'soft' && lookup === 'id';

export const COUNTS: Readonly<Record<Combination['count'], CountMode | undefined>> = {
  exact: 'exact',
  none: 'none',
  upTo: { upTo: 5 },
  default: undefined,
};

const deletionColumns = ({ deletion }: Combination) => (deletion === 'soft' ? softDelete() : {});

/** Tells everything that the field requires. */
const value = (row: object) => JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)));
/** What each computed field requires. */
export function requiredBy({ computed }: Combination): Readonly<Record<string, readonly string[]>> {
  switch (computed) {
    case 'own':
      return { label: ['title', 'size'] };
    case 'ruled':
      return { worth: ['title', 'margin'], shout: ['note'], mixed: ['note', 'margin', 'title'] };
    case 'hidden':
      return { coded: ['code'] };
    case 'related':
      return { place: ['area.name', 'title'], secret: ['area.code', 'note'] };
    default:
      return {};
  }
}

export interface Declared {
  readonly at: string;
  readonly combination: Combination;
  readonly module: Module;
  readonly actions: readonly ObjectActions[];
  readonly tables: { readonly rows: never; readonly areas: never; readonly parts: never };
  readonly policy: never;
  readonly mount: Readonly<Record<string, never>>;
}

/** Tables, policies and controllers of one combination. */
export function declare(at: string, combination: Combination): Declared {
  const { tenant, scope, version, area, parts: relation, parent } = combination;
  const areaColumns = { id: t.uuidv7().pk(), org: t.text(20), name: t.text(40), code: t.text(40).nullable(), terms: t.int().nullable() };
  const areas = model(`areas_${at}`, { ...areaColumns, ...deletionColumns(combination) });
  const fullTextIndex = combination.searchBy === 'fullText' ? { fullText: [{ columns: ['title', 'slug'] }] } : {};
  const columns = {
    id: t.uuidv7().pk(),
    org: t.text(20).readOnly(),
    owner_id: t.uuid().readOnly(),
    slug: t.text(20),
    title: t.text(40),
    code: t.text(40).nullable(),
    size: t.int().nullable(),
    price: t.decimal(8, 2).nullable(),
    flag: t.bool(),
    status: t.enum(['open', 'paid', 'void']),
    at: t.timestamp().nullable(),
    note: t.text(40).nullable(),
    margin: t.decimal(8, 2).nullable(),
    ...(version === 'yes' ? versioned() : {}),
    ...deletionColumns(combination),
  };
  const indexes = [{ columns: ['slug'], unique: true, ...(combination.deletion === 'soft' ? { where: 'deleted_at is null' } : {}) }];
  const reference = (target: string | (() => never)) => {
    const column = t.ref(target);
    return parent === 'yes' ? column : column.nullable();
  };
  const rows = model(`rows_${at}`, { ...columns, area_id: reference(() => areas as never) }, { indexes, ...fullTextIndex });
  const partColumns = { id: t.uuidv7().pk(), sku: t.text(20), amount: t.int(), cancelled: t.bool() };
  const parts = model(`parts_${at}`, { ...partColumns, row_id: t.ref(() => rows), ...deletionColumns(combination) });
  const declareResource = resource as unknown as (model: object, options: object) => never;

  const areaPolicy = declareResource(areas, {
    ...(area === 'tenant' ? { tenant: 'org', input: [] } : { unscoped: true }),
    ...(area === 'ruled' ? { fields: { code: visibleTo(isStaff) } } : {}),
  });
  const partPolicy = declareResource(parts, {
    ...(relation === 'scoped' ? { rows: () => ({ row: { is: {} } }), anonymous: { row: { is: {} } } } : { unscoped: true }),
    relations: { row: one(() => rows as never, 'row_id') },
  });
  const ruled = (level: 'open' | 'omit' | 'null', permission: typeof isStaff) =>
    level === 'open' ? undefined : visibleTo(permission, { hidden: level });
  const fields = { margin: ruled(combination.margin, isStaff), note: ruled(combination.note, isOwner()) };
  const isScoped = scope !== 'unscoped' || tenant === 'yes';
  const policy = declareResource(rows, {
    ...(isScoped ? {} : { unscoped: true }),
    ...(tenant === 'yes' ? { tenant: 'org' } : {}),
    ...(scope === 'owner' || scope === 'grants' || scope === 'inherited' ? { owner: 'owner_id' } : {}),
    ...(scope === 'unless' || scope === 'exempt' ? { owner: { column: 'owner_id', unless: isStaff } } : {}),
    ...(scope === 'rows' || scope === 'anonymous'
      ? {
          rows: ({ user }: { user: { id: string; is_staff: boolean } }) =>
            user.is_staff ? true : { or: [{ owner_id: user.id }, { status: 'open' }] },
        }
      : {}),
    ...(scope === 'anonymous' ? { anonymous: { status: 'open' } } : {}),
    ...(isGranted(combination) ? { access: grants(rows as never) } : {}),
    admin: { rows: true },
    ...(version === 'yes' ? { version: 'version' } : {}),
    relations: {
      area: one(() => areas as never, 'area_id'),
      parts: many(
        () => parts as never,
        'row_id',
        relation === 'limited' ? ({ order: ['-amount'], limit: 2, where: { cancelled: false } } as never) : {},
      ),
    },
    ...(combination.code === 'hidden' ? { hidden: ['code'] } : {}),
    fields: Object.fromEntries(Object.entries(fields).filter(([, rule]) => rule !== undefined)),
    computed: Object.fromEntries(
      Object.entries(requiredBy(combination)).map(([name, requires]) => [name, { requires, response: z.string(), value }]),
    ),
  });
  const isOpen = scope === 'anonymous' || isGranted(combination);
  const reads = {
    create: false,
    update: false,
    partialUpdate: false,
    destroy: false,
    ...(hasRestore(combination) ? { restore: { permission: isStaff } } : {}),
  };
  const controller = CrudController as unknown as (policy: never, options: object) => new () => object;
  const counted = COUNTS[combination.count];
  class Rows extends controller(policy, {
    permission: isOpen ? allowAny : isAuthenticated,
    filters: {
      size: ['eq', 'gte', 'isnull'],
      title: ['contains'],
      flag: ['eq'],
      status: ['in'],
      margin: ['gte'],
      'area.name': ['starts'],
      'area.code': ['eq'],
      mine: filter(z.boolean(), (asked, { user }) => (asked && user !== null ? { owner_id: user.id } : {})),
    },
    search: combination.searchBy === 'fullText' ? fullText({ columns: ['title', 'slug'] }) : ['title', 'slug'],
    ...(hasRestore(combination) ? { restore: true } : {}),
    ordering: {
      by: ['size', 'title', 'at', 'price', 'margin', 'slug'],
      ...(combination.usualOrdering === 'none' ? {} : { default: [combination.usualOrdering] }),
    },
    expand: ['area', 'parts'],
    page: {
      style: combination.style,
      default: combination.pageSize,
      max: 100,
      ...(counted === undefined ? {} : { count: counted }),
    },
    etag: combination.etag === 'no' ? false : 'optional',
    ...(combination.lookup === 'slug' ? { lookup: 'slug' } : {}),
    ...(parent === 'yes' ? { parent: { relation: 'area' } } : {}),
    ...(combination.output === 'narrow' ? { output: narrowOutput(combination) } : {}),
    export: ['csv', 'jsonl'],
    stats: { by: ['status', 'margin'], metrics: { n: count(), total: sum('price'), top: max('size') } },
    meta: true,
    operations: reads,
  }) {}
  Object.defineProperty(Rows, 'name', { value: `Rows${at}` });
  const below = parent === 'yes' ? `/${at}/areas/:area_id/rows` : `/${at}/rows`;
  return {
    at,
    combination,
    module: {
      name: `matrix_${at}`,
      models: [areas, rows, parts] as never,
      resources: [areaPolicy, partPolicy],
      admin: { resources: [modelResource(policy)] },
      migrations: [
        migration('0001_initial', [
          createTable(`areas_${at}`, areas.columns),
          createTable(`rows_${at}`, { ...columns, area_id: reference(`areas_${at}`) } as never, { indexes, ...fullTextIndex }),
          createTable(`parts_${at}`, { ...parts.columns, row_id: t.ref(`rows_${at}`) } as never),
        ]),
      ],
    },
    actions: [
      ...(scope === 'inherited'
        ? [objectActions(areas as never, { actions: ['view'], sets: { viewer: ['view'] }, subjects: ['authenticated', 'public'] })]
        : []),
      ...(isGranted(combination)
        ? [
            objectActions(rows as never, {
              // `delete`: who may restore a row needs it.
              actions: ['view', 'change', 'delete'],
              sets: { viewer: ['view'] },
              creator: 'viewer',
              subjects: ['authenticated', 'public'],
              ...(scope === 'inherited' ? { through: 'area_id' } : {}),
            }),
          ]
        : []),
    ],
    tables: { rows: rows as never, areas: areas as never, parts: parts as never },
    policy,
    mount: { [below]: Rows as never },
  };
}

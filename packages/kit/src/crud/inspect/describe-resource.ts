import type { App, MountedController } from '../../app/declare/module.ts';
import type { ResponseFacts } from '../../http/exchange/compiled-route.ts';
import { mountedResourceOf } from '../serve/controller.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { operationOf } from '../options/operation-field.ts';
import type { OwnerRule, TenantRule } from '../declare/scope-rule.ts';
import type { FieldRule } from '../declare/field-rule.ts';
import { widestView } from '../policy/make-view.ts';
import { visibleToNames } from '../policy/rule-marks.ts';
import { type UnindexedColumn, unindexedColumns } from '../checks/unindexed.ts';

/** A mounted resource as data: what `kit inspect orders` prints. */
export interface ResourceDescription {
  readonly resource: string;
  readonly table: string;
  readonly controller: string;
  /** Which rows a caller reaches, in words. */
  readonly rows: readonly string[];
  readonly fields: readonly { readonly name: string; readonly visible_to: string; readonly writable_by: string }[];
  readonly operations: readonly {
    readonly name: string;
    readonly method: string;
    readonly path: string;
    readonly permission: string;
    readonly scope: string | null;
    readonly throttles: readonly string[];
    /** Whether each request is one transaction. */
    readonly transaction: boolean;
    /** Whether requests can carry an idempotency key. */
    readonly idempotency: 'required' | 'accepted' | 'none';
    readonly statements: string;
    /** Versions of its responses, and how they are cached. */
    readonly responses: ResponseFacts;
  }[];
  /** Where relations lead, by which column, and whether callers can expand them. */
  readonly relations: readonly {
    readonly name: string;
    readonly kind: string;
    readonly resource: string;
    readonly column: string;
    readonly expand: boolean;
  }[];
  /** Filters of lists with their operators, and the columns that lists can be sorted by. */
  readonly filters: Readonly<Record<string, readonly string[]>>;
  readonly ordering: readonly string[];
  /** How `?search=` finds rows; null where lists have no search. */
  readonly search: { readonly backend: string; readonly columns: readonly string[] } | null;
  readonly unindexed: readonly UnindexedColumn[];
}

/** Every resource that the app mounts, once per controller. */
export function describeResources(app: App): ResourceDescription[] {
  return app.controllers.flatMap((controller) => {
    const mounted = mountedResourceOf(controller);
    return mounted === undefined ? [] : [describe(app, controller, mounted)];
  });
}

function describe(app: App, controller: MountedController, mounted: MountedResource): ResourceDescription {
  const { policy } = mounted;
  const own = new Set(Object.values(controller));
  return {
    resource: policy.name,
    table: policy.model.name,
    controller: controller.constructor.name,
    rows: rowsOf(mounted),
    fields: fieldsOf(mounted),
    operations: app.routes
      .filter(({ route }) => own.has(route))
      .map((route) => ({
        name: route.field,
        method: route.method,
        path: route.path,
        permission: route.permission.name,
        scope: route.scope ?? null,
        throttles: route.throttles.map(({ name }) => name),
        transaction: route.atomic !== undefined,
        idempotency: route.idempotency === undefined ? 'none' : mounted.options.idempotency === 'required' ? 'required' : 'accepted',
        statements: statementsOf(mounted, operationOf(mounted.options, route.field), app),
        responses: route.responseFacts,
      })),
    relations: relationsOf(mounted),
    filters: Object.fromEntries(
      Object.entries(mounted.options.filters ?? {}).map(([name, operators]) => [
        name,
        Array.isArray(operators) ? operators.map(String) : ['custom'],
      ]),
    ),
    ordering: [...(mounted.options.ordering?.by ?? [])].map(String),
    search: mounted.list.search === undefined ? null : { backend: mounted.list.search.name, columns: mounted.list.search.columns },
    unindexed: unindexedColumns(mounted),
  };
}

function relationsOf({ policy, options }: MountedResource): ResourceDescription['relations'] {
  const expanded = new Set((options.expand ?? []).map((path) => path.split('.', 1)[0]));
  return Object.entries(policy.resource.relations as Readonly<Record<string, { readonly kind: string; readonly column: string }>>).map(
    ([name, { kind, column }]) => ({ name, kind, resource: policy.edge(name)?.target.name ?? '-', column, expand: expanded.has(name) }),
  );
}

function exception({ unless }: OwnerRule | TenantRule): string {
  return unless === undefined ? '' : `, unless ${unless.name}`;
}

function rowsOf({ policy }: MountedResource): string[] {
  const { audience, audienceRule: given } = policy;
  if (given !== undefined)
    return [
      `of the audience ${audience}: ${given.rows === true ? 'every row' : typeof given.rows === 'function' ? 'those that its function returns' : JSON.stringify(given.rows)}`,
      ...(policy.bounds.tenant === undefined ? [] : [`of the caller's tenant: ${policy.bounds.tenant}`]),
      ...(policy.options.access === undefined || given.access === false ? [] : [`by ${policy.options.access.name}`]),
    ];
  const { rows, anonymous, unscoped, access } = policy.options;
  const words: string[] = [];
  if (unscoped === true) words.push('every row (unscoped)');
  const { tenant, owner } = policy;
  if (tenant !== undefined)
    words.push(
      `of the caller's tenant: ${tenant.column}${tenant.none === undefined ? '' : ', or of no tenant without one'}${exception(tenant)}`,
    );
  if (owner !== undefined)
    words.push(`of the caller: ${owner.column}${exception(owner)}${access === undefined ? '' : `, or by ${access.name}`}`);
  else if (access !== undefined) words.push(`by ${access.name}`);
  if (rows !== undefined) words.push('that the rows function gives');
  if (anonymous !== undefined) words.push(`without credentials: ${JSON.stringify(anonymous)}`);
  if (policy.softDelete !== undefined) words.push('not deleted');
  return words;
}

function fieldsOf({ policy, input, output }: MountedResource): ResourceDescription['fields'] {
  const everyone = 'everyone';
  const view = widestView(policy, output);
  const columns = policy.codeColumns.map((name) => {
    const rule: FieldRule | undefined = policy.options.fields?.[name];
    return {
      name,
      // A controller may show less than its resource does.
      visible_to: view.fields.has(name) ? (rule?.visibleTo?.name ?? everyone) : 'nobody',
      writable_by: input.includes(name) ? (rule?.writableBy?.name ?? everyone) : 'nobody',
    };
  });
  const computed = view
    .computedFields()
    .filter(({ name }) => !Object.hasOwn(policy.options.shown ?? {}, name))
    .map((field) => ({ name: field.name, visible_to: visibleToNames(field) ?? everyone, writable_by: 'nobody' }));
  return [...columns, ...computed];
}

/** How many statements an operation runs, besides authentication. */
function statementsOf({ policy, list, options, output, parent: below }: MountedResource, name: string, { registry }: App): string {
  const { hooks, onChange, rows, access, audit, events } = policy.options;
  const records =
    (audit !== false && registry.audit !== null ? 1 : 0) + (events !== undefined && events !== false && registry.events !== null ? 1 : 0);
  const isWatched = onChange !== undefined || rows !== undefined || access !== undefined || records > 0;
  const more = records === 0 ? '' : `, + ${records} of the record`;
  const batches = [...list.expand].filter((path) => isToMany(policy, path)).length;
  const loads = widestView(policy, output)
    .computedFields()
    .filter(({ load }) => load !== undefined).length;
  const expanded = `${batches === 0 ? '' : `, + 1 per to-many expansion (${batches})`}${loads === 0 ? '' : `, + 1 per loaded field (${loads})`}`;
  const parent = options.parent === undefined ? '' : ', + 1 of the parent';
  // A parent that can be soft-deleted is found again, and held, in the transaction of new rows.
  const isHeld = below?.edge.target.softDelete !== undefined;
  const held = isHeld ? ', + 2 of the parent' : parent;
  switch (name) {
    case 'list':
    case 'query':
    case 'queryAlias':
      return `1${list.page.count === 'none' ? '' : ', + 1 to count when the first page is full'}${expanded}${parent}`;
    case 'retrieve':
      return `1${expanded}`;
    case 'create':
      return `${isWatched || isHeld || hooks?.create !== undefined ? 'a transaction of 1' : '1'}, + 1 per reference that is checked${more}${held}`;
    case 'update':
    case 'partialUpdate':
      return isWatched || hooks?.update !== undefined
        ? `a transaction of 2${more}${parent}`
        : `1, + 1 per reference that is checked${parent}`;
    case 'destroy':
      return isWatched || hooks?.destroy !== undefined ? `a transaction of 2${more}${parent}` : `1${parent}`;
    case 'restore':
      return `a transaction of 2, + 1 per level of the cascade${more}${parent}`;
    case 'bulkCreate':
      return `a transaction of 1 per ${hooks?.create === undefined ? '100 rows' : 'row'}, + 1 per reference that is checked${more}${held}`;
    case 'bulkUpdate':
      return `a transaction of 1 to lock, + 1 per row, or 1 for the same values${more}${parent}`;
    case 'bulkDestroy':
      return `a transaction of 1 to lock, + ${hooks?.destroy === undefined ? '1' : '1 per row'}${more}${parent}`;
    case 'import':
      return `a transaction of 1 per ${hooks?.create === undefined ? 'batch of 100 rows or more' : 'row'}, + 1 per reference that is checked${more}${isHeld ? `${parent}, + 1 per batch to hold it` : parent}`;
    case 'export':
      return `1 to count, 1 through a cursor${parent}`;
    case 'stats':
      return `1${parent}`;
    case 'transitions':
      return '1';
    case 'meta':
      return '0';
    default:
      if (Object.hasOwn(policy.options.actions ?? {}, name))
        return `a transaction of 1 to lock, + those of the action, + 1 to read the row again${more}${parent}`;
      return Object.hasOwn(policy.options.transitions ?? {}, name) ? (isWatched ? `a transaction of 2${more}` : '1 or 2') : '-';
  }
}

function isToMany(policy: MountedResource['policy'], path: string): boolean {
  let at: MountedResource['policy'] | undefined = policy;
  let kind: string | undefined;
  for (const step of path.split('.')) {
    const edge: ReturnType<MountedResource['policy']['edge']> = at?.edge(step);
    kind = edge?.kind;
    at = edge?.target;
  }
  return kind === 'many';
}

import { hash } from 'node:crypto';
import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere, MovingWhere } from '../../db/sql/where/compile-where.ts';
import type { KnownRows } from '../../db/sql/where/decided-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { crudErrors } from '../declare/errors.ts';
import type { Item } from '../declare/item.ts';
import { limits } from '../declare/limits.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import type { CrudRequest, Scope } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { View } from '../policy/view.ts';
import { withoutEdge } from '../policy/without-edge.ts';
import { conditions, keysetFor, unitFor } from '../read/list.ts';
import type { ListRequest } from '../read/list-query.ts';
import { presentRows, selectRows } from '../read/read.ts';
import type { SelectUnit } from '../read/select.ts';
import { isLoggedColumn, keyText } from '../write/change-log.ts';
import { equalities } from './equalities.ts';
import type { LiveList, LiveRow } from './live-stream.ts';
import { boundsOf, later, type Moment, movingRules } from './moment.ts';
import { shownChange } from './shown-change.ts';

/** What of a list a stream follows. */
export type FollowedList = Pick<ListRequest, 'where' | 'ordering' | 'fields'> & {
  /** What `where` was compiled to for this caller. Thousands of lists are asked about again and again. */
  readonly compiled?: readonly MovingWhere[];
  /** Whom relations lead to from every row. */
  readonly known: KnownRows;
};

/**
 * A list as its caller has it at a moment, which is also that of the request: what it contains is decided by the columns of a row, and the time. Throws 422 where
 * they do not decide it.
 */
export async function listNow(
  mounted: MountedResource,
  request: CrudRequest,
  view: View,
  list: FollowedList,
  moment: Moment,
  permitted: readonly CompiledWhere[] = [],
): Promise<LiveList> {
  const { policy, parent } = mounted;
  const scopeOf = async (asked: CrudRequest): Promise<Scope> => {
    const visible = await policy.rows.visible(asked);
    // The source asks whether the caller sees the parent.
    return parent === undefined ? visible : withoutParent(policy, asked, visible, parent.edge.name);
  };
  const rules = await movingRules(request, moment, async (asked) => [(await scopeOf(asked)).compiled]);
  const { where } = await scopeOf(request);
  const { known } = list;
  const own = list.compiled ?? (await conditions(request, policy, list.where, [])).map((each) => each.deciding(known));
  const filters = [...permitted, ...own];
  const unit = unitOf(mounted, view, list);
  const states = statesOf(policy, unit, moment, known);
  const at = (time: Date): readonly CompiledWhere[] => [...rules, ...filters].map((each) => each.at(time));
  let changed: LiveList['isChanged'] | undefined;
  return {
    ...decidedBy(policy, request, [view.mask, ...known.values()], [...rules, ...filters], states),
    shape: unit.isWire ? unit : undefined,
    // Made when they are asked for: the rights of thousands of lists are compared without them.
    isChanged: (db, prior, row) => (changed ??= shownChange(policy, request, withoutStates(mounted, view, unit)))(db, prior, row),
    get bounds() {
      return equalities(policy, [where, ...list.where]);
    },
    read: (db, keys) => rowsOf(db, request, { mounted, unit, list, where: at(moment.at).slice(rules.length), keys }),
  };
}

function withoutParent(policy: Policy, request: CrudRequest, { where: given }: Scope, edge: string): Scope {
  const where = withoutEdge(given, edge) as Scope['where'];
  return { where, compiled: policy.rows.compile(request, where) };
}

/** The conditions of the derived states among the fields of items, those of each in their order. Throws 422 where the time does not decide them. */
function statesOf({ derived }: Policy, unit: SelectUnit, moment: Moment, known: KnownRows): readonly (readonly MovingWhere[])[] {
  return unit.shape.computed.flatMap(({ name }) => {
    const state = derived.get(name);
    if (state === undefined) return [];
    const compiledAt = (time: Date) => state.compiled(time).map((each) => each.deciding(known));
    const then = compiledAt(later(moment));
    return [compiledAt(moment.at).map((each, place) => each.moving(moment.at, then[place] as CompiledWhere, later(moment)) ?? refuse())];
  });
}

/** States are compared by their conditions: what they read of other rows is not in the log. */
function withoutStates(mounted: MountedResource, view: View, unit: SelectUnit): SelectUnit {
  const { derived } = mounted.policy;
  const { columns, computed, places } = unit.shape;
  if (!computed.some(({ name }) => derived.has(name))) return unit;
  const names = [...new Set([...places, ...columns.map(({ name }) => name), ...computed.map(({ name }) => name)])];
  return unitOf(mounted, view, { fields: names.filter((name) => !derived.has(name)) });
}

function refuse(): never {
  throw notLive();
}

/** Which rows of a table a caller sees, without what they contain: for those that are only told that something changed. */
export async function rowsNow(
  mounted: MountedResource,
  request: CrudRequest,
  moment: Moment,
  scopeOf: (request: CrudRequest) => Promise<Scope>,
  also: Where | undefined,
): Promise<LiveList> {
  const { policy } = mounted;
  const own = also === undefined ? [] : [policy.rows.compile(request, also)];
  const rules = await movingRules(request, moment, async (asked) => [(await scopeOf(asked)).compiled]);
  return keysOnly(policy, {
    ...decidedBy(policy, request, [], [...rules, ...own], []),
    isChanged: () => true,
    bounds: equalities(policy, [(await scopeOf(request)).where, ...(also === undefined ? [] : [also])]),
  });
}

/** Time stands still in what tells the rights of one moment from those of another. */
const NO_TIME = new Date(0);

function decidedBy(
  policy: Policy,
  request: CrudRequest,
  parts: readonly unknown[],
  all: readonly MovingWhere[],
  states: readonly (readonly MovingWhere[])[],
): Pick<LiveList, 'rights' | 'times' | 'stateOf'> {
  const still = all.map((each) => each.at(NO_TIME));
  requireDecidable([...still, ...states.flat().map((each) => each.at(NO_TIME))]);
  const times = boundsOf([...all, ...states.flat()]);
  const conditionsAt = memoized((time) => all.map((each) => each.at(time)));
  const statesAt = memoized((time) => states.map((state) => state.map((each) => each.at(time))));
  const isIn = (row: Item, time: Date) => conditionsAt(time).every((each) => each.matches(row) === true);
  return {
    rights: rightsText(policy.database(request), parts, still),
    times,
    stateOf: (row, time) =>
      isIn(row, time)
        ? statesAt(time)
            .map((state) => state.findIndex((each) => each.matches(row) === true))
            .join()
        : undefined,
  };
}

/** Many rows are asked about at the same two moments. */
function memoized<V>(make: (time: Date) => V): (time: Date) => V {
  const known = new Map<number, V>();
  return (time) => {
    const ms = time.getTime();
    const value = known.get(ms) ?? make(time);
    known.set(ms, value);
    return value;
  };
}

/** The list without what its rows contain: nothing of them is read. */
export function keysOnly(policy: Policy, list: Omit<LiveList, 'shape' | 'read'>): LiveList {
  const read = (_: Db, keys: readonly unknown[] = []) =>
    Promise.resolve(new Map(keys.map((key) => [keyText(policy, key), { key: null, item: {} }])));
  return { ...list, shape: undefined, read };
}

function rightsText({ dialect }: Db, parts: readonly unknown[], conditions: readonly CompiledWhere[]): string {
  return hash('sha256', asText([...parts, ...conditions.flatMap((each) => [each.shape, each.values(dialect)])]), 'base64url');
}

/** The same text for the same values. */
export function asText(parts: readonly unknown[]): string {
  return JSON.stringify(parts, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
}

/** The fields of items: those that were asked for, or all that can be followed. */
export function followedFields({ options: { liveWithout = [] } }: MountedResource, view: View): readonly string[] | undefined {
  return liveWithout.length === 0 ? undefined : [...view.fields.keys()].filter((name) => !liveWithout.includes(name));
}

/** The columns and fields of the items, and the key. */
export function unitOf(mounted: MountedResource, view: View, { fields }: Pick<FollowedList, 'fields'>): SelectUnit {
  return unitFor(mounted.shape(view, { fields, expand: [] }, 1), [mounted.policy.key.name]);
}

interface RowsAsked {
  readonly mounted: MountedResource;
  readonly unit: SelectUnit;
  readonly list: FollowedList;
  readonly where: readonly CompiledWhere[];
  readonly keys: readonly unknown[] | undefined;
}

async function rowsOf(
  db: Db,
  request: CrudRequest,
  { mounted: { policy }, unit, list, where, keys }: RowsAsked,
): Promise<ReadonlyMap<string, LiveRow>> {
  const { name } = policy.key;
  const among = keys === undefined ? [] : [policy.rows.compile(request, { [name]: { in: keys } } as Where)];
  const rows = await selectRows(db, request, {
    unit,
    where: [...where, ...among],
    orderBy: keysetFor(policy, list.ordering).orderSql(db.dialect),
    limit: limits.liveRows + 1,
    isFreeForm: true,
  });
  if (rows.length > limits.liveRows) throw crudErrors.live_too_many_rows({ extensions: { rows_max: limits.liveRows } });
  const items = await presentRows(db, request, unit, rows);
  return new Map(
    rows.map((row, place) => {
      const value = unit.extra(row, name);
      const text = typeof value === 'string' ? JSON.stringify(value) : keyText(policy, value);
      return [text, { key: JSON.parse(text) as unknown, item: items[place] as LiveRow['item'] }];
    }),
  );
}

/** Whether the row alone, with what the log has of its past, decides. */
export function isDecidable(condition: CompiledWhere): boolean {
  return condition.isEvaluable && [...condition.columns].every(isLoggedColumn);
}

function requireDecidable(all: readonly CompiledWhere[]): void {
  if (!all.every(isDecidable)) throw notLive();
}

export function notLive(...errors: FieldError[]): Error {
  return errors.length === 0 ? crudErrors.not_live() : crudErrors.not_live({ errors });
}

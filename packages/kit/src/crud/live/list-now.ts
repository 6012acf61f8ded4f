import { hash } from 'node:crypto';
import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { crudErrors } from '../declare/errors.ts';
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

/** What of a list a stream follows. */
export type FollowedList = Pick<ListRequest, 'where' | 'ordering' | 'fields'> & {
  /** What `where` was compiled to for this caller. Thousands of lists are asked about again and again. */
  readonly compiled?: readonly CompiledWhere[];
};

/** A list as its caller has it now: what it contains is decided by the columns of a row. Throws 422 where they do not decide it. */
export async function listNow(
  mounted: MountedResource,
  request: CrudRequest,
  view: View,
  list: FollowedList,
  permitted: readonly CompiledWhere[] = [],
): Promise<LiveList> {
  const { policy } = mounted;
  const visible = await policy.rows.visible(request);
  const { parent } = mounted;
  // The source asks whether the caller sees the parent.
  const scope = parent === undefined ? visible : withoutParent(policy, request, visible, parent.edge.name);
  const where = list.compiled === undefined ? await conditions(request, policy, list.where, permitted) : [...permitted, ...list.compiled];
  const all = [scope.compiled, ...where];
  requireDecidable(all);
  const unit = unitOf(mounted, view, list);
  return {
    rights: rightsText(policy.database(request), [view.mask], all),
    shape: unit.isWire ? unit : undefined,
    bounds: equalities(policy, [scope.where, ...list.where]),
    contains: (row) => all.every((each) => each.matches(row) === true),
    read: (db, keys) => rowsOf(db, request, { mounted, unit, list, where, keys }),
  };
}

function withoutParent(policy: Policy, request: CrudRequest, { where: given }: Scope, edge: string): Scope {
  const where = withoutEdge(given, edge) as Scope['where'];
  return { where, compiled: policy.rows.compile(request, where) };
}

/** Which rows of a table a caller sees, without what they contain: for those that are only told that something changed. */
export function rowsNow(mounted: MountedResource, request: CrudRequest, { where, compiled }: Scope, also: Where | undefined): LiveList {
  const { policy } = mounted;
  const all = [compiled, ...(also === undefined ? [] : [policy.rows.compile(request, also)])];
  requireDecidable(all);
  return keysOnly(policy, {
    rights: rightsText(policy.database(request), [], all),
    bounds: equalities(policy, [where, ...(also === undefined ? [] : [also])]),
    contains: (row) => all.every((each) => each.matches(row) === true),
  });
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

import { isDeepStrictEqual } from 'node:util';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import { buildItems } from '../read/present.ts';
import type { SelectUnit } from '../read/select.ts';
import { isLoggedColumn, isOther } from '../write/change-log.ts';
import type { LiveList } from './live-stream.ts';

/**
 * Whether a change of a row is one of its item, as this caller reads it. An event without news would tell that something changed which the caller does not see:
 * a column without which the list is read, one that is hidden in this row, or one that only a computed field reads.
 */
export function shownChange(policy: Policy, request: CrudRequest, unit: SelectUnit): LiveList['isChanged'] {
  const columns = [...unit.root.columns].map((name) => policy.statements.column(name));
  const shown = new Map(unit.shape.columns.map((column) => [column.name, column.shown]));
  return (db, prior, row) => {
    const changed = columns.filter((column) => isOther(column, prior, row) ?? true);
    if (changed.length === 0) return false;
    if (!unit.needsCode || changed.some(({ name }) => shown.get(name) === 'always')) return true;
    return (async () => {
      const [was, is] = await buildItems(db, request, unit, [{ ...row, ...prior }, row]);
      // Their values before are not known: they are news where they are shown, or where a computed field may have read them.
      const unknown = changed.filter((column) => !isLoggedColumn(column));
      return unknown.some(({ name }) => !shown.has(name) || Object.hasOwn(is ?? {}, name)) || !isDeepStrictEqual(was, is);
    })();
  };
}

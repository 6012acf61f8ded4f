import { countRows, adminStream } from '../../app/admin/list.ts';
import type { AdminListQuery } from '../../app/admin/declaration.ts';
import type { AdminFileFormat } from '../../app/admin/shapes.ts';
import { csvHeader, csvWriter } from '../../crud/files/csv-text.ts';
import { crudErrors } from '../../crud/declare/errors.ts';
import { limits } from '../../crud/declare/limits.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Plan, Row } from './model-plan.ts';
import { isShown, outputOf, type RowView, selectOf } from './model-rows.ts';

/** Rows per piece: enough that the round trips do not count, few enough that memory stays flat. */
const CHUNK_ROWS = 500;

/** The rows of a list with every column that this member of staff sees, in one statement: the file is of one moment. */
export async function* exportRows(
  db: Db,
  plan: Plan,
  view: RowView,
  query: AdminListQuery,
  format: AdminFileFormat,
): AsyncGenerator<string, void> {
  const select = await selectOf(db, plan, view, query, true);
  if ((await countRows(db, select, limits.exportRows)) === null)
    throw crudErrors.export_too_large({ extensions: { rows_max: limits.exportRows } });
  const shown = plan.shown.filter(({ name }) => isShown(view, name));
  const columns = shown.map(({ name, settings }) => ({ path: [name], settings }));
  const csv = csvWriter(columns, true);
  const write = format === 'csv' ? csv : jsonLines;
  // With the first rows: an export that gets no connection is refused before its first byte.
  let opening = format === 'csv' ? csvHeader(columns) : '';
  for await (const rows of adminStream<Row>(db, select, query, CHUNK_ROWS)) {
    const text = write(
      rows.map((row) => {
        const json = outputOf(plan.model, row);
        return Object.fromEntries(shown.map(({ name }) => [name, json[name]]));
      }),
    );
    yield opening + text;
    opening = '';
  }
  if (opening !== '') yield opening;
}

function jsonLines(items: readonly Row[]): string {
  return items.map((item) => `${JSON.stringify(item)}\n`).join('');
}

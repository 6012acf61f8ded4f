import { recordExport } from '../../auth/request/record-reading.ts';
import { countUpTo } from '../../db/rows/count-rows.ts';
import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import { renderFailure } from '../../http/respond/answer.ts';
import { compileSerializer, type Serializer } from '../../http/json/project.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import { jsonSchemaOf } from '../../http/declare/schema.ts';
import { countExport } from '../../http/admit/open-exports.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { csvColumns, csvHeader, csvWriter } from './csv-text.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ExportOptions, FileFormat } from '../options/file-options.ts';
import { ExportStream } from './export-stream.ts';
import { limits } from '../declare/limits.ts';
import { describe } from '../read/index-serves.ts';
import { conditions, keysetFor, narrowWhole, unitFor } from '../read/list.ts';
import type { Context, ListAccess } from '../read/list-access.ts';
import { ListQueryReader } from '../read/list-query.ts';
import { readFresh } from '../read/read-fresh.ts';
import { presentRows, streamRows, type Selection } from '../read/read.ts';
import { itemSchema } from '../mount/schemas.ts';
import type { SelectUnit } from '../read/select.ts';

export const mediaTypes: Readonly<Record<FileFormat, string>> = { csv: 'text/csv', jsonl: 'application/x-ndjson' };

export function exportOptions(given: readonly FileFormat[] | ExportOptions): Required<ExportOptions> {
  const {
    formats,
    rowsMax = limits.exportRows,
    idleMs = limits.exportIdleMs,
    durationMs = limits.exportDurationMs,
  } = 'formats' in given ? given : { formats: given };
  return { formats, rowsMax, idleMs, durationMs };
}

/** `GET /export`: the rows of a list as a file, in one statement through a cursor. */
export class Exporter {
  readonly #access: ListAccess;
  readonly #options: Required<ExportOptions>;
  #serializer: Serializer | undefined;

  constructor(access: ListAccess, given: readonly FileFormat[] | ExportOptions) {
    this.#access = access;
    this.#options = exportOptions(given);
  }

  get options(): Required<ExportOptions> {
    return this.#options;
  }

  /** Everything that may be refused is refused before the first byte; the first rows are read by then, too. */
  readonly handle = async (context: Context): Promise<ExportStream> => {
    const onEnd = countExport(exchangeOf(context.request));
    try {
      return await this.#open(context, onEnd);
    } catch (error) {
      onEnd();
      throw error;
    }
  };

  async #open(context: Context, onEnd: () => void): Promise<ExportStream> {
    const access = this.#access;
    const { policy } = access;
    const request = await access.request(context, 'export');
    const view = await access.view(request);
    const reader = new ListQueryReader(access.list, request, view);
    const { list, format } = await reader.readExport(context.query as QueryValues, this.#options.formats);
    const shape = access.shape(view, list, 1);
    const db = policy.database(request);
    const fixed = [...(await access.permittedRows(context, request)), ...(await access.parentRows(context, request, db, true))];
    const where = [...(await narrowWhole(db, request, policy)), ...(await conditions(request, policy, list.where, fixed))];
    const unit = unitFor(shape, []);
    const orderBy = keysetFor(policy, list.ordering).orderSql(db.dialect);
    const selection: Selection = { unit, where, orderBy, isFreeForm: true };
    const columns = csvColumns(shape);
    const write = format === 'csv' ? csvWriter(columns, unit.isWire) : this.#jsonLines();
    const exchange = exchangeOf(context.request);
    context.reply.header('content-type', `${mediaTypes[format]}; charset=utf-8`);
    context.reply.header('content-disposition', `attachment; filename="${policy.model.name}.${format}"`);
    context.reply.header('cache-control', 'no-store');
    const what = `export of ${describe(policy, where, list.ordering)}`;
    const { chunks, first } = await readFresh(access, context, request, fixed, async (fresh) => {
      await this.#refuseTooLarge(fresh, request, where);
      const rows = this.#chunks(fresh, request, selection, unit, write, what);
      return { chunks: rows, first: await rows.next() };
    });
    const audit = access.auditOf('exports');
    if (audit !== null) {
      const { principal: actor, requestId } = request;
      const ofOne = policy.tenant !== undefined && policy.audienceRule?.tenant !== 'all';
      const tenant = ofOne ? request.tenant : null;
      await recordExport({ audit, db, actor, requestId, tenant }, policy.name, policy.model.name, { query: context.query as object });
    }
    const render = (error: unknown) => renderFailure(exchange, { errors: exchange.route?.errors ?? [] }, error);
    let rendered: ReturnType<typeof render> | undefined;
    return new ExportStream(chunks, {
      opening: (format === 'csv' ? csvHeader(columns) : '') + (first.done === true ? '' : first.value),
      ...(format === 'csv' ? {} : { errorLine: () => `${JSON.stringify({ error: rendered?.document })}\n` }),
      onError: (error) => (rendered = render(error)),
      signal: context.signal,
      idleMs: this.#options.idleMs,
      durationMs: this.#options.durationMs,
      onEnd,
    });
  }

  async *#chunks(
    db: Db,
    request: CrudRequest,
    selection: Selection,
    unit: SelectUnit,
    write: (items: readonly Record<string, unknown>[]) => string,
    mayBeLong: string,
  ): AsyncGenerator<string, undefined> {
    const { rowsMax } = this.#options;
    let count = 0;
    for await (const rows of streamRows(db, request, selection, CHUNK_ROWS, mayBeLong)) {
      count += rows.length;
      // Rows that came after they were counted.
      if (count > rowsMax) throw tooLarge(rowsMax);
      yield write(await presentRows(db, request, unit, rows));
    }
    return undefined;
  }

  async #refuseTooLarge(db: Db, request: CrudRequest, where: readonly CompiledWhere[]): Promise<void> {
    const { policy } = this.#access;
    const { compiled } = await policy.rows.visible(request);
    const all = [compiled, ...where];
    if (all.some(({ constant }) => constant === false)) return;
    const parameters: unknown[] = [];
    const terms = all.filter(({ constant }) => constant !== true).map((each) => each.append(db.dialect, 't0', parameters));
    const from = `from ${policy.table} t0${terms.length === 0 ? '' : ` where ${terms.join(' and ')}`}`;
    const { rowsMax } = this.#options;
    if ((await countUpTo(db, { from, parameters, mayBeLong: `count of ${describe(policy, all)}` }, rowsMax)) === null)
      throw tooLarge(rowsMax);
  }

  #jsonLines(): (items: readonly Record<string, unknown>[]) => string {
    const { policy, output, list } = this.#access;
    const serialize = (this.#serializer ??= compileSerializer(jsonSchemaOf(itemSchema(policy, output, list.expand), 'output')));
    return (items) => {
      let text = '';
      for (const item of items) text += `${serialize(item)}\n`;
      return text;
    };
  }
}

/** Rows per chunk: enough that the round trips do not count, few enough that memory stays flat. */
const CHUNK_ROWS = 500;

function tooLarge(rowsMax: number): Error {
  return crudErrors.export_too_large({ extensions: { rows_max: rowsMax } });
}

import { type CompiledWhere, compileWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { Policy } from '../policy/policy.ts';

/** Rows that a list looks at where no index finds or orders them. Of a larger table these are the newest. */
export const BOUNDED_ROWS = 50_000;

/** Rows that a search of a large table looks up before the list is read; more say that the text is too short. */
const FOUND_MAX = 1_000;

/** What a search looks into. */
export interface BoundedSearch {
  /** Text columns; each word is contained in one of them. */
  readonly columns: readonly string[];
  readonly words: readonly string[];
  /** Columns with an index: a row with exactly this value is found however old it is. */
  readonly equals: readonly { readonly column: string; readonly values: readonly unknown[] }[];
}

/**
 * Conditions of a list that bound what it reads: where no index finds or orders the rows, the {@link BOUNDED_ROWS} newest of a larger table are looked
 * at. Newest is what the key says, a UUIDv7 or a counter.
 */
export class BoundedWhere {
  readonly where: Where[] = [];
  /** How many rows the list looked at; undefined: at all. */
  searched: number | undefined;
  /** A search stopped at its limit: the list may lack matches. */
  isCut = false;
  readonly #db: Db;
  readonly #policy: Policy;

  constructor(db: Db, policy: Policy) {
    this.#db = db;
    this.#policy = policy;
  }

  add(where: Where): void {
    this.where.push(where);
  }

  /** Only the newest rows. */
  async newest(): Promise<void> {
    if (this.searched !== undefined) return;
    const oldest = await this.#oldest();
    if (oldest !== undefined) this.#from(this.#policy.key.name, oldest);
  }

  /** Only the rows at the upper end of a range of a column that an index has in order. */
  async newestOf(column: string, range: Where): Promise<void> {
    const compiled = compileWhere(this.#policy.model, range);
    if (compiled.constant === false) return;
    const value = await this.#oldest(column, compiled);
    if (value !== undefined) this.#from(column, value);
  }

  /**
   * Adds the condition of a search. A table of up to {@link BOUNDED_ROWS} rows is searched whole. Of a larger one the newest rows are searched, and by
   * the indexes all of them: no statement reads the whole table, whether it finds something or not. Only where an index found older ones, too, are the
   * matches looked up first, and then `isCut` says that there may be more.
   */
  async search({ columns, words, equals }: BoundedSearch, isWhole: boolean): Promise<void> {
    const contains = { and: words.map((word) => ({ or: columns.map((column) => ({ [column]: { contains: word } })) })) } as Where;
    const exact = equals.map(({ column, values }) => ({ [column]: { in: values } }) as Where);
    const key = this.#policy.key.name;
    const oldest = isWhole ? undefined : await this.#oldest();
    if (oldest === undefined) return this.add({ or: [contains, ...exact] } as Where);
    const ids = new Set<unknown>();
    for (const each of exact) await this.#collect(each, ids);
    if (ids.size === 0) {
      this.#from(key, oldest);
      return this.add(contains);
    }
    this.searched = BOUNDED_ROWS;
    await this.#collect({ and: [{ [key]: { gte: oldest } }, contains] } as Where, ids);
    this.add({ [key]: { in: [...ids] } } as Where);
  }

  #from(column: string, value: unknown): void {
    this.searched = BOUNDED_ROWS;
    this.add({ [column]: { gte: value } } as Where);
  }

  /** The value of the oldest row that is looked at; undefined: all are. */
  async #oldest(name = this.#policy.key.name, range?: CompiledWhere): Promise<unknown> {
    const { table, model } = this.#policy;
    const column = `t.${quoteName(name)}`;
    const parameters: unknown[] = [];
    const where = range === undefined || range.constant === true ? '' : ` where ${range.append(this.#db.dialect, 't', parameters)}`;
    const sql = `select ${column} as value from ${table} t${where} order by ${column} desc limit 1 offset ${BOUNDED_ROWS}`;
    const options = { mayBeLong: `the newest rows of ${model.name}`, ...(range === undefined ? {} : { replanned: true }) };
    return (await this.#db.query<{ value: unknown }>(sql, parameters, options))[0]?.value;
  }

  async #collect(where: Where, ids: Set<unknown>): Promise<void> {
    const { table, model, key } = this.#policy;
    const compiled = compileWhere(model, where);
    if (compiled.constant === false) return;
    const parameters: unknown[] = [];
    const condition = compiled.constant === true ? '' : ` where ${compiled.append(this.#db.dialect, 't', parameters)}`;
    const found = await this.#db.query<{ id: unknown }>(
      `select t.${quoteName(key.name)} as id from ${table} t${condition} order by t.${quoteName(key.name)} desc limit ${FOUND_MAX + 1}`,
      parameters,
      { replanned: true, mayBeLong: `search of ${model.name}` },
    );
    if (found.length > FOUND_MAX) this.isCut = true;
    for (const { id } of found.slice(0, FOUND_MAX)) ids.add(id);
  }
}

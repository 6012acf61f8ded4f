import type { Dialect } from '../../dialect.ts';
import type { SqlText } from '../sql-text.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { aList } from '../../../options/value-rule.ts';

declare const mark: unique symbol;

/** A condition in SQL; made by {@link whereSql}. */
export interface WhereSql {
  readonly [mark]: true;
}

/** A class of its own, so that no JSON of a client can be one. */
export class SqlCondition {
  readonly #text: SqlText;
  readonly values: readonly unknown[];
  /** Its text is the condition of a partial index: see {@link indexWords}. */
  readonly isIndexed: boolean;

  constructor(text: SqlText, values: readonly unknown[], isIndexed = false) {
    this.#text = text;
    this.values = values;
    this.isIndexed = isIndexed;
  }

  textFor(dialect: Dialect): string {
    const text = this.#text;
    if (typeof text === 'string') return text;
    // A text that is missing is refused where the condition is compiled.
    return typeof text === 'object' && text !== null ? text[dialect] : '';
  }

  /** Says which texts it has, in one line. */
  get shape(): string {
    return JSON.stringify(this.#text);
  }
}

/**
 * A condition that data cannot express: `whereSql('exists (select 1 from members m where m.team_id = this.team_id and m.user_id = $1)', [id])`.
 * `this.column` is a column of the row, `$1` the first of `values`. Rows under it cannot be checked in JavaScript.
 */
export function whereSql(text: SqlText, values: readonly unknown[] = []): WhereSql {
  requireArguments('whereSql()', { values }, { values: aList });
  return new SqlCondition(text, [...values]) as unknown as WhereSql;
}

/** The condition of a partial index of the model, in its words: the database finds the rows by that index. */
export function inIndexWords(text: string): WhereSql {
  return new SqlCondition(text, [], true) as unknown as WhereSql;
}

/** The words of a condition as an index has them: without `this.`, quotes around names, and differences in spaces and case. */
export function indexWords(text: string): string {
  return text
    .replaceAll(/\bthis\./g, '')
    .replaceAll(/"([a-z_][a-z0-9_]*)"/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** Quoted text, quoted names and comments are left alone; what is left is placeholders and columns of the row. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\d+)|(?<![\w.])this\.([a-z][a-z0-9_]*)/g;

/** The text with its placeholders counted from `first` and its columns under their alias. */
export function placeSql(text: string, first: number, columnSql: (name: string) => string): string {
  return text.replaceAll(TOKENS, (token: string, placeholder: string | undefined, column: string | undefined) => {
    if (placeholder !== undefined) return `$${Number(placeholder) - 1 + first}`;
    return column === undefined ? token : columnSql(column);
  });
}

/** The highest placeholder and the columns that a text names. */
export function sqlNames(text: string): { readonly placeholders: number; readonly columns: readonly string[] } {
  const tokens = [...text.matchAll(TOKENS)];
  return {
    placeholders: Math.max(0, ...tokens.map(([, placeholder]) => Number(placeholder ?? 0))),
    columns: tokens.flatMap(([, , column]) => (column === undefined ? [] : [column])),
  };
}

/** A text cut at its placeholders, and which value belongs between each two parts. */
export function splitAtPlaceholders(text: string): { readonly parts: string[]; readonly order: readonly number[] } {
  const parts: string[] = [];
  const order: number[] = [];
  let start = 0;
  for (const { 0: token, 1: placeholder, index } of text.matchAll(TOKENS)) {
    if (placeholder === undefined) continue;
    parts.push(text.slice(start, index));
    order.push(Number(placeholder) - 1);
    start = index + token.length;
  }
  return { parts: [...parts, text.slice(start)], order };
}

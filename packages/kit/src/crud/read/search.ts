import { fullTextCondition, fullTextWords } from '../../db/declare/full-text.ts';
import { fullTextDrift } from '../../db/migrations/full-text-drift.ts';
import type { Model } from '../../db/declare/model.ts';
import type { FullTextDefinition } from '../../db/declare/table-definition.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { whereSql } from '../../db/sql/where/where-sql.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { filledText, flag, listOf, required } from '../../options/value-rule.ts';
import type { SearchBackend } from '../declare/search-backend.ts';

/** The default: every word is contained in one of the columns. Needs nothing in the database, and reads every row that other conditions leave. */
export function containsSearch(columns: readonly string[]): SearchBackend {
  return {
    name: 'contains',
    columns,
    description: `Words that ${columns.join(' or ')} must contain, all of them.`,
    where: (text) => ({ and: blankSeparated(text).map((word) => ({ or: columns.map((path) => containsWord(path, word)) })) }) as Where,
    faults: ({ model }) =>
      columns
        .filter((column) => Object.hasOwn(model.table.columns, column) && model.table.columns[column]?.kind !== 'text')
        .map((column) => ({ id: 'E012', message: `search uses "${column}", which is not text.` })),
  };
}

/** Of the row, or of the row that a relation leads to. */
function containsWord(path: string, word: string): object {
  const [column = '', related] = path.split('.');
  return related === undefined ? { [column]: { contains: word } } : { [column]: { is: { [related]: { contains: word } } } };
}

/** What of a text is searched for. */
export function searchedWords(backend: SearchBackend, text: string): readonly string[] {
  return backend.words?.(text) ?? blankSeparated(text);
}

export function blankSeparated(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

export interface FullTextOptions<N extends string = string> {
  /** The columns of a `fullText` of the model. */
  readonly columns: readonly N[];
  /** The text search configuration of PostgreSQL, as the model has it. Default: `simple`. */
  readonly config?: string;
  /** Whether a word also finds longer ones that start with it. Default: true. */
  readonly prefix?: boolean;
}

/** `kit migrate` makes them where its migration is pending; where it was applied, it finds nothing to do. */
const MISSING_STRUCTURES =
  'Run: npx kit migrate. Where nothing is pending they were changed by hand: write a migration with dropFullText and createFullText.';

const WORD_BYTES_MAX = 2_046;

const rules: OptionRules<FullTextOptions> = { columns: required(listOf(filledText, { min: 1 })), config: filledText, prefix: flag };

/**
 * Searches by words: full text of PostgreSQL, FTS5 of SQLite. Case and accents do not matter, all words must be there. The model declares
 * the same columns, `fullText: [{ columns: ['title', 'body'] }]`, and migrations keep what it takes.
 */
export function fullText<const N extends string>(options: FullTextOptions<N>): SearchBackend<N> {
  const { columns, config = 'simple', prefix = true } = readOptions('fullText()', options, rules as OptionRules<FullTextOptions<N>>);
  const definitionOf = ({ table }: Model): FullTextDefinition | undefined =>
    table.fullText?.find((each) => each.config === config && [...each.columns].sort().join() === [...columns].sort().join());
  return {
    name: config === 'simple' ? 'full text' : `full text (${config})`,
    columns: [...columns],
    description: `Words that ${columns.join(' or ')} must have, all of them, whatever their case and accents.${prefix ? ' A word also finds longer ones that start with it.' : ''}`,
    words: (text) => fullTextWords(text).map(({ written }) => written),
    where(text, { model, dialect }) {
      const words = fullTextWords(text);
      const definition = definitionOf(model);
      if (words.length === 0 || definition === undefined) return { or: [] };
      // PostgreSQL keeps no longer words, and refuses a query that has one.
      if (dialect === 'postgres' && words.some(({ plain }) => Buffer.byteLength(plain) > WORD_BYTES_MAX)) return { or: [] };
      const condition = fullTextCondition(model.table, definition, { words, prefix }, dialect);
      return whereSql(condition.text, [condition.value]);
    },
    faults({ model }) {
      if (definitionOf(model) !== undefined) return [];
      const names = columns.map((column) => `'${column}'`).join(', ');
      const declaration = `fullText: [{ columns: [${names}]${config === 'simple' ? '' : `, config: '${config}'`} }]`;
      return [
        {
          id: 'E012',
          message: `search is full text of ${columns.join(', ')} (${config}), which model("${model.name}") does not declare.`,
          hint: `Add to its options: ${declaration}, then run npx kit migrate make.`,
        },
      ];
    },
    async check({ model, db }) {
      const definition = definitionOf(model);
      if (definition === undefined) return [];
      const missing = await fullTextDrift(db, model.table, definition);
      return missing.map((message) => ({ id: 'E021', message, hint: MISSING_STRUCTURES }));
    },
  };
}

import { dbErrors } from '../../errors.ts';
import { normalizedBytes, plaintextBytes } from '../../declare/encrypted-column.ts';
import type { Model } from '../../declare/model.ts';
import { SearchParameter } from '../../sealing/keyed-parameter.ts';
import { searchPlaceOf } from '../encrypted-place.ts';
import { type ModelColumn, statementsOf } from '../model-statements.ts';
import { isStorableText } from '../../values/storable-text.ts';
import { suggestion } from '../../declare/table-definition.ts';
import { operatorsOf, type WhereOperator } from './operators.ts';
import {
  allOf,
  anyOf,
  type CompareOperator,
  type Edge,
  FALSE,
  foldCase,
  notOf,
  TRUE,
  untrueOf,
  type WhereNode,
  type WhereValue,
} from './where-node.ts';
import { NotTrue } from './not-true.ts';
import { SqlCondition, sqlNames } from './where-sql.ts';
import type { WhereRelation, WhereRelations } from './where.ts';
import { isPlainObject } from '../../../options/value-rule.ts';

/** Deeper trees are a mistake: policies of relations that lead to each other, usually. */
const DEPTH_MAX = 32;

/** Where in a tree we are. Trees are parsed with every request, and few are refused: the path is put together for a refusal only. */
interface Place {
  readonly model: Model;
  readonly relations: WhereRelations | undefined;
  readonly outer: Place | undefined;
  readonly step: string | number;
  readonly depth: number;
  /** Values that every matching row has in columns that separate the search values of encrypted columns. */
  readonly tenants?: ReadonlyMap<string, unknown> | undefined;
}

/**
 * Checks a tree against its model. Whatever it does not know (a name, an operator, a value of another kind, undefined) is refused:
 * a condition that is skipped would show more rows than were meant.
 */
export function parseWhere(model: Model, where: unknown, relations?: WhereRelations): WhereNode {
  return parseEquality(model, where) ?? parseTree(where, { model, relations, outer: undefined, step: 'where', depth: 0 });
}

/** One column and its value, which most conditions are. Undefined for every other tree, and for one that is to be refused. */
function parseEquality(model: Model, where: unknown): WhereNode | undefined {
  if (!isPlainObject(where)) return undefined;
  let name: string | undefined;
  for (const each in where) {
    if (name !== undefined || !Object.hasOwn(where, each)) return undefined;
    name = each;
  }
  if (name === undefined || name === 'and' || name === 'or' || name === 'not') return undefined;
  const given = where[name];
  const column = typeof given === 'string' || typeof given === 'number' ? statementsOf(model).byName.get(name) : undefined;
  if (
    column === undefined ||
    column.settings.encrypted !== undefined ||
    column.definition.kind === 'json' ||
    column.definition.kind === 'array'
  )
    return undefined;
  try {
    return { node: 'compare', column, operator: 'eq', value: { given, encoded: column.encode(given) } };
  } catch {
    return undefined;
  }
}

function parseTree(where: unknown, outer: Place): WhereNode {
  const tenants = equalitiesOf(outer, where);
  const place = tenants === undefined ? outer : { ...outer, tenants };
  if (place.depth > DEPTH_MAX) throw refuse(place, `is nested deeper than ${DEPTH_MAX} levels`);
  if (typeof where === 'boolean') return where ? TRUE : FALSE;
  if (where instanceof SqlCondition) return parseSql(where, place);
  if (where instanceof NotTrue) return untrueOf(parseTree(where.of, inside(place, 'not true')));
  if (!isPlainObject(where)) throw refuse(place, 'must be an object of conditions');
  const names = sortedNames(where);
  if (names.length === 1) return parseMember(names[0] as string, where[names[0] as string], inside(place, names[0] as string));
  return allOf(names.map((name) => parseMember(name, where[name], inside(place, name))));
}

function parseMember(name: string, value: unknown, place: Place): WhereNode {
  if (name === 'and') return allOf(parseList(value, place));
  if (name === 'or') return anyOf(parseList(value, place));
  if (name === 'not') return notOf(parseTree(value, place));
  const { byName } = statementsOf(place.model);
  const column = byName.get(name);
  if (column !== undefined) return parseColumn(column, value, place);
  const relation = place.relations?.(name, place.model);
  if (relation !== undefined) return parseRelation(name, relation, value, place);
  throw refuse(place, `refers to an unknown column or relation of "${place.model.name}"${suggestion(name, [...byName.keys()])}`);
}

function parseList(value: unknown, place: Place): WhereNode[] {
  if (!Array.isArray(value)) throw refuse(place, 'must be a list of conditions');
  // Not map: it would pass over the holes of a sparse list.
  return Array.from(value, (item: unknown, index) => parseTree(item, inside(place, index)));
}

function parseColumn(column: ModelColumn, value: unknown, place: Place): WhereNode {
  if (value === null) return { node: 'null', column, isNull: true };
  if (!isPlainObject(value)) return parseOperator(column, 'eq', value, place);
  const names = sortedNames(value);
  if (names.length === 0) throw refuse(place, 'has no operator');
  if (names.length === 1) return parseOperator(column, names[0] as string, value[names[0] as string], inside(place, names[0] as string));
  return allOf(names.map((name) => parseOperator(column, name, value[name], inside(place, name))));
}

function parseOperator(column: ModelColumn, name: string, value: unknown, place: Place): WhereNode {
  const { settings, definition } = column;
  const { kind } = definition;
  const isEncrypted = settings.encrypted !== undefined;
  const known: readonly string[] = operatorsOf({ ...settings, kind });
  if (!known.includes(name))
    throw refuse(place, `is not an operator of ${isEncrypted ? 'this encrypted column' : `${kind} columns`} (${known.join(', ')})`);
  const operator = name as WhereOperator;
  if (isEncrypted && operator !== 'isnull' && value !== null) return parseSearch(column, operator === 'in' ? value : [value], place);
  switch (operator) {
    case 'isnull':
      if (typeof value !== 'boolean') throw refuse(place, 'must be true or false');
      return { node: 'null', column, isNull: value };
    case 'in':
    case 'nin':
      return parseAmong(column, operator === 'nin', value, place);
    case 'contains':
    case 'starts':
    case 'ends':
      if (typeof value !== 'string' || !isStorableText(value))
        throw refuse(place, 'must be a string without U+0000 and half surrogate pairs');
      return { node: 'text', column, operator, folded: foldCase(value) };
    default:
      if (value === null && (operator === 'eq' || operator === 'ne')) return { node: 'null', column, isNull: operator === 'eq' };
      if (value === '' && kind === 'text' && (operator === 'eq' || operator === 'ne'))
        return { node: 'empty', column, isEmpty: operator === 'eq' };
      return { node: 'compare', column, operator: operator satisfies CompareOperator, value: encode(column, value, place) };
  }
}

function parseSearch(column: ModelColumn, list: unknown, place: Place): WhereNode {
  if (!Array.isArray(list)) throw refuse(place, 'must be a list of values');
  if (list.length === 0) return FALSE;
  const { encrypted = {}, kind } = column.settings;
  const plaintexts = Array.from(list, (item: unknown, index) => {
    encode(column, item, inside(place, index));
    return normalizedBytes(encrypted, kind, plaintextBytes(kind, item));
  });
  const { tenant } = encrypted;
  const row = tenant === undefined ? {} : { [tenant]: tenantBeside(column, tenant, place) };
  return { node: 'search', column, parameter: new SearchParameter(searchPlaceOf(place.model, column, row), plaintexts, 'list') };
}

/** The tenant of a search: the same conjunction names it. */
function tenantBeside(column: ModelColumn, tenant: string, place: Place): unknown {
  const given = place.tenants?.get(tenant);
  if (given === undefined)
    throw refuse(
      place,
      `needs the tenant: the search values of "${column.name}" are separate for each "${tenant}". Add { ${tenant}: … } beside it`,
    );
  return given;
}

/** The values of columns that every row of a conjunction has, for searches that need the tenant. Undefined where no search of the model does. */
function equalitiesOf({ model, tenants }: Place, where: unknown): Place['tenants'] {
  const { encrypted, byName } = statementsOf(model);
  const separating = encrypted.flatMap(({ settings }) => settings.encrypted?.tenant ?? []);
  if (separating.length === 0) return undefined;
  const found = new Map(tenants);
  const visit = (tree: unknown): void => {
    if (!isPlainObject(tree)) return;
    for (const name of separating) {
      const given = tree[name];
      const value = isPlainObject(given) ? given['eq'] : given;
      // A value that the column cannot have is refused when it is parsed.
      if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
        found.set(name, value === null ? null : byName.get(name)?.encode(value));
    }
    if (Array.isArray(tree['and'])) tree['and'].forEach(visit);
  };
  visit(where);
  return found;
}

function parseAmong(column: ModelColumn, negated: boolean, list: unknown, place: Place): WhereNode {
  if (!Array.isArray(list)) throw refuse(place, 'must be a list of values');
  const values = Array.from(list, (item: unknown, index) => encode(column, item, inside(place, index)));
  if (values.length === 0) return negated ? TRUE : FALSE;
  return { node: 'among', column, negated, values };
}

function encode(column: ModelColumn, given: unknown, place: Place): WhereValue {
  if (given === undefined) throw refuse(place, 'is undefined');
  if (given === null) throw refuse(place, 'cannot be null: ask with isnull');
  try {
    return { given, encoded: column.encode(given) };
  } catch (error) {
    throw refuse(place, `cannot be compared with "${column.name}": ${(error as Error).message}`, error);
  }
}

const QUANTIFIERS: Readonly<Record<WhereRelation['kind'], readonly string[]>> = { one: ['is'], many: ['some', 'none'] };

function parseRelation(name: string, relation: WhereRelation, value: unknown, place: Place): WhereNode {
  const known = QUANTIFIERS[relation.kind];
  const [quantifier, ...more] = isPlainObject(value) ? Object.keys(value) : [];
  if (!isPlainObject(value) || quantifier === undefined || more.length > 0 || !known.includes(quantifier))
    throw refuse(place, `must have one member, ${known.join(' or ')}`);
  const target = { ...inside(place, quantifier), model: relation.model, tenants: undefined };
  const visible = parseTree(relation.where ?? true, { ...target, step: `${quantifier} (its rows)` });
  return {
    node: 'exists',
    name,
    edge: edgeOf(relation, place),
    negated: quantifier === 'none',
    of: allOf([visible, parseTree(value[quantifier], target)]),
  };
}

function edgeOf({ kind, model, column, references, table: joined }: WhereRelation, place: Place): Edge {
  const referred = kind === 'one' ? model : place.model;
  const [key = '', ...rest] = referred.primaryKey;
  if (references === undefined && rest.length > 0) throw refuse(place, `must name the column of "${referred.name}": its key has several`);
  const [theirColumn, myColumn] = kind === 'one' ? [references ?? key, column] : [column, references ?? key];
  return {
    table: model.name,
    theirColumn: statementsOf(model).column(theirColumn).name,
    myColumn: statementsOf(place.model).column(myColumn).name,
    joined,
  };
}

function parseSql(condition: SqlCondition, place: Place): WhereNode {
  const { byName } = statementsOf(place.model);
  for (const dialect of ['sqlite', 'postgres'] as const) {
    const text: unknown = condition.textFor(dialect);
    if (typeof text !== 'string' || text.trim() === '') throw refuse(place, `is SQL without a text for ${dialect}`);
    const { placeholders, columns } = sqlNames(text);
    if (placeholders > condition.values.length)
      throw refuse(place, `has a placeholder $${placeholders} and ${condition.values.length} values`);
    for (const name of columns)
      if (!byName.has(name) && place.model.table.fullText?.some((each) => each.name === name) !== true)
        throw refuse(place, `refers to the unknown column "this.${name}" of "${place.model.name}"${suggestion(name, [...byName.keys()])}`);
  }
  if (condition.values.includes(undefined)) throw refuse(place, 'has an undefined value');
  return { node: 'sql', condition };
}

/** Sorted: the order in which a caller names columns must not make another statement. */
function sortedNames(value: object): string[] {
  const names = Object.keys(value);
  return names.length > 1 ? names.sort() : names;
}

function inside(place: Place, step: string | number): Place {
  return { model: place.model, relations: place.relations, outer: place, step, depth: place.depth + 1, tenants: place.tenants };
}

/** `where.and[1].total.gte`. */
function pathOf({ outer, step }: Place): string {
  if (outer === undefined) return String(step);
  return `${pathOf(outer)}${typeof step === 'number' ? `[${step}]` : `.${step}`}`;
}

function refuse(place: Place, problem: string, cause?: unknown): Error {
  const { model } = place;
  return dbErrors.invalid_where({
    message: `${pathOf(place)} (table "${model.name}") ${problem}${/[.?]$/.test(problem) ? '' : '.'}`,
    cause,
  });
}

import { partSchemaOf, type JsonSchema, type Schema, type SchemaResult } from '../../http/declare/schema.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { type FilteredColumn, filterValueJson, operandJson } from '../parameters/filter-parameters.ts';
import type { ListDeclaration } from './list-query.ts';
import { sizeName, sizeSchema } from './page-parameters.ts';
import { pascal } from '../../db/declare/component-name.ts';
import { markVisible } from '../policy/rule-marks.ts';
import { isMembers } from '../../options/value-rule.ts';

/** The body of QUERY: a tree of the declared filters. */
export function queryBody(list: ListDeclaration): Schema<Record<string, unknown>> {
  const { policy, search, ordering, limits } = list;
  const name = pascal(policy.name);
  const defs = whereJson(name, list);
  // As a list, or as the parameter of GET has them.
  const strings = { type: ['array', 'string'], items: { type: 'string' }, minItems: 1, minLength: 1 };
  const json = () => ({
    type: 'object',
    properties: {
      where: { $ref: `#/$defs/${name}Where` },
      ...(search !== undefined ? { search: { type: 'string', maxLength: limits.searchLength } } : {}),
      ...(ordering === undefined ? {} : { ordering: strings }),
      ...(list.isSparse ? { fields: strings } : {}),
      ...(list.expand.size > 0 ? { expand: strings } : {}),
      [sizeName(list.page)]: sizeSchema(list.page),
    },
    additionalProperties: false,
    $defs: defs,
  });
  // The tree is read with its places by the handler; here only the members around it.
  const known = Object.keys(json().properties);
  const validate = (value: unknown): SchemaResult<Record<string, unknown>> => {
    if (value === undefined) return { value: {} };
    if (!isMembers(value)) return { issues: [{ message: 'Give an object.', code: 'invalid_type', path: [] }] };
    const issues = Object.entries(value).flatMap(([member, given]) => memberIssues(member, given, known));
    return issues.length > 0 ? { issues } : { value };
  };
  return { '~standard': { version: 1, vendor: 'kit', validate, jsonSchema: { input: json, output: json } } };
}

/** A column of the tree: what stands for `eq` and `isnull` only where these are declared. */
function leafJson({ operators, settings, column }: FilteredColumn, valuesMax: number): JsonSchema {
  const value = filterValueJson(settings);
  const byOperator = Object.fromEntries(operators.map((operator) => [operator, operandJson(value, operator, valuesMax)]));
  const forms: JsonSchema[] = [
    ...(operators.includes('eq') ? [value] : []),
    { type: 'object', properties: byOperator, minProperties: 1, additionalProperties: false },
    ...(operators.includes('isnull') ? [{ type: 'null' }] : []),
  ];
  return markVisible(forms.length === 1 ? forms[0]! : { anyOf: forms }, column);
}

/** Conditions on these members, and on trees of them. */
function treeJson(name: string, members: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const tree = { $ref: `#/$defs/${name}` };
  const trees = { type: 'array', items: tree, minItems: 1 };
  return { ...members, and: trees, or: trees, not: tree };
}

/** The trees of a QUERY by name: its own, and that of every relation with a filter. */
function whereJson(name: string, { filters, limits }: ListDeclaration): Record<string, JsonSchema> {
  const own: Record<string, JsonSchema> = {};
  const related = new Map<string, Record<string, JsonSchema>>();
  for (const [path, column] of filters.columns) {
    const leaf = leafJson(column, limits.listValues);
    const { relation } = column;
    if (relation === undefined) own[path] = leaf;
    else related.set(relation, { ...related.get(relation), [column.column.name]: leaf });
  }
  const nameOf = (relation: string) => `${name}${pascal(relation)}Where`;
  for (const relation of related.keys())
    own[relation] = {
      type: 'object',
      properties: { is: { $ref: `#/$defs/${nameOf(relation)}` } },
      required: ['is'],
      additionalProperties: false,
    };
  for (const [filterName, filter] of filters.custom) own[filterName] = partSchemaOf(filter.schema, 'input');
  const description = `Conditions joined by AND; at most ${limits.whereDepth} levels and ${limits.whereLeaves} conditions.`;
  return {
    [`${name}Where`]: { type: 'object', description, properties: treeJson(`${name}Where`, own) },
    ...Object.fromEntries(
      [...related].map(([relation, members]) => [
        nameOf(relation),
        { type: 'object', description: `Conditions on ${relation}, joined by AND.`, properties: treeJson(nameOf(relation), members) },
      ]),
    ),
  };
}

function memberIssues(member: string, given: unknown, known: readonly string[]) {
  const issue = (message: string, code: string) => [{ message, code, path: [member] }];
  if (!known.includes(member)) return issue(`Unknown field.${didYouMean(member, known)}`, 'unknown_field');
  if (member === 'where') return [];
  if (member === 'search') return typeof given === 'string' ? [] : issue('must be a string', 'type');
  if (member === 'limit' || member === 'page_size') return typeof given === 'number' ? [] : issue('must be an integer', 'type');
  const names = Array.isArray(given) ? (given as unknown[]) : [given];
  return names.every((each) => typeof each === 'string') ? [] : issue('must be a list of names', 'type');
}

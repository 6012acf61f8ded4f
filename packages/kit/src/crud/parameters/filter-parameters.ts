import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
import { operatorsOf, type WhereOperator } from '../../db/sql/where/operators.ts';
import { notTrue } from '../../db/sql/where/not-true.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { columnJsonSchema } from '../../db/declare/column-json.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { withRootDefinitions } from '../../db/values/root-definitions.ts';
import { type JsonSchema, partSchemaOf } from '../../http/declare/schema.ts';
import { compileCoercions } from '../../http/json/coerce.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import { isCustomFilter, type CustomFilter } from '../declare/filter.ts';
import { readJsonValue, readParameter, type ReadValue } from './parameter-value.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import type { View, ViewColumn } from '../policy/view.ts';
import { markVisible } from '../policy/rule-marks.ts';

/** A column that may be filtered: of the resource, or of what a to-one relation leads to. */
export interface FilteredColumn {
  /** As declared: `status`, `customer.name`. */
  readonly path: string;
  /** The relation it belongs to; undefined for columns of the resource. */
  readonly relation: string | undefined;
  /** As every caller that sees it would. */
  readonly column: ViewColumn;
  readonly settings: ColumnSettings;
  readonly operators: readonly WhereOperator[];
}

/** One query parameter that filters. */
export type FilterParameter =
  | { readonly kind: 'column'; readonly name: string; readonly column: FilteredColumn; readonly operator: WhereOperator }
  | { readonly kind: 'custom'; readonly name: string; readonly filter: CustomFilter };

/** The parameters that `filters` declares: `status`, `total__gte`, `customer__name__contains`, custom ones under their own name. */
export class FilterParameters {
  readonly policy: Policy;
  readonly parameters = new Map<string, FilterParameter>();
  readonly columns = new Map<string, FilteredColumn>();
  readonly custom = new Map<string, CustomFilter>();
  /** Parameters that two filters take. */
  readonly collisions: string[] = [];

  constructor(policy: Policy, declared: Readonly<Record<string, unknown>>) {
    this.policy = policy;
    for (const [name, given] of Object.entries(declared)) {
      if (isCustomFilter(given)) {
        this.custom.set(name, given);
        this.#add({ kind: 'custom', name, filter: given });
      } else this.#addColumn(name, given as readonly WhereOperator[]);
    }
  }

  #addColumn(path: string, operators: readonly WhereOperator[]): void {
    const column = filteredColumn(this.policy, path, operators);
    if (column === undefined) return; // reported by the start-up checks
    this.columns.set(path, column);
    const base = path.replace('.', '__');
    for (const operator of operators) {
      // URLs are logged on their way: values of encrypted columns are sent in the body of a QUERY.
      if (column.settings.encrypted !== undefined && operator !== 'isnull') continue;
      const name = operator === 'eq' ? base : `${base}__${operator}`;
      this.#add({ kind: 'column', name, column, operator });
    }
  }

  #add(parameter: FilterParameter): void {
    if (this.parameters.has(parameter.name)) this.collisions.push(parameter.name);
    this.parameters.set(parameter.name, parameter);
  }

  /** The parameters this caller may use. What it may not see, it may not filter by. */
  usable(view: View): FilterParameter[] {
    return [...this.parameters.values()].filter((parameter) => this.isUsable(parameter, view));
  }

  isUsable(parameter: FilterParameter, view: View): boolean {
    return parameter.kind === 'custom' || this.isVisible(parameter.column, view);
  }

  isVisible({ path }: FilteredColumn, view: View): boolean {
    return view.find(path, 'filter') !== undefined;
  }
}

export function filteredColumn(policy: Policy, path: string, operators: readonly WhereOperator[]): FilteredColumn | undefined {
  const found = widestView(policy).find(path, 'filter');
  if (found === undefined || found.field.kind !== 'column') return undefined;
  const [first, ...deeper] = found.edges;
  // One level, to one row: of several, none would be meant.
  if (deeper.length > 0 || first?.edge.kind === 'many' || first?.edge.isLoaded === true) return undefined;
  return { path, relation: first?.edge.name, column: found.field, settings: found.field.settings, operators };
}

/** The condition of a value, below its relation where the column has one. */
function columnCondition(column: FilteredColumn, operator: WhereOperator, value: unknown, now: Date): Where {
  const condition = ownCondition(column, operator, value, now);
  return column.relation === undefined ? condition : ({ [column.relation]: { is: condition } } as Where);
}

/** The condition of a value on the table that has the column: for a tree, which says the relation itself. */
function ownCondition({ column }: FilteredColumn, operator: WhereOperator, value: unknown, now: Date): Where {
  const { derived } = column;
  if (derived !== undefined) {
    const where = derived.isOneOf(Array.isArray(value) ? value : [value as string], now);
    return operator === 'ne' || operator === 'nin' ? notTrue(where) : where;
  }
  return { [column.name]: { [operator]: value } } as Where;
}

/** The condition of a leaf: what stands beside it in a tree may negate it, so that a derived state must not be unknown. */
function leafCondition(column: FilteredColumn, operator: WhereOperator, value: unknown, now: Date): Where {
  const condition = ownCondition(column, operator, value, now);
  // The condition stands by itself, too: an index may serve it.
  return column.column.derived === undefined ? condition : ({ and: [condition, notTrue(notTrue(condition))] } as Where);
}

/** Reads the text of one parameter; faults are added with their place. */
export function readColumnFilter(
  { name, column, operator }: Extract<FilterParameter, { kind: 'column' }>,
  given: string | readonly string[],
  valuesMax: number,
  now: Date,
  faults: FieldError[],
): Where | undefined {
  const refuse = (code: string, message: string): undefined => {
    faults.push({ location: ['query', name], code, message });
    return undefined;
  };
  const { settings } = column;
  if (operator === 'in' || operator === 'nin') {
    const texts = (typeof given === 'string' ? [given] : given).flatMap((text) => (isJoined(settings) ? splitList(text) : [text]));
    if (texts.length === 0) return refuse('required', 'Give at least one value.');
    if (texts.length > valuesMax) return refuse('too_many', `At most ${valuesMax} values.`);
    const values: unknown[] = [];
    for (const text of texts) {
      const read = readParameter(settings, text);
      if (read.fault !== undefined) return refuse('invalid', sentence(read.fault));
      values.push(read.value);
    }
    return columnCondition(column, operator, values, now);
  }
  if (typeof given !== 'string') return refuse('duplicate', 'Give this parameter once.');
  const read = readOperand(settings, operator, given, readParameter);
  return read.fault === undefined ? columnCondition(column, operator, read.value, now) : refuse('invalid', sentence(read.fault));
}

/** Reads one leaf of a query body: `{ gte: '10.00' }` or a plain value. The condition is about the column's own table. */
export function readJsonFilter(
  column: FilteredColumn,
  operator: WhereOperator,
  given: unknown,
  valuesMax: number,
  now: Date,
): { readonly where: Where } | { readonly fault: string } {
  const { settings } = column;
  if (operator === 'in' || operator === 'nin') {
    if (!Array.isArray(given) || given.length === 0) return { fault: 'must be a list with at least one value' };
    if (given.length > valuesMax) return { fault: `must have at most ${valuesMax} values` };
    const values: unknown[] = [];
    for (const each of given) {
      const read = readJsonValue(settings, each);
      if (read.fault !== undefined) return { fault: read.fault };
      values.push(read.value);
    }
    return { where: leafCondition(column, operator, values, now) };
  }
  const read =
    operator === 'isnull'
      ? typeof given === 'boolean'
        ? { value: given }
        : { fault: 'must be true or false' }
      : textOperators.has(operator)
        ? typeof given === 'string'
          ? { value: given }
          : { fault: 'must be a string' }
        : readJsonValue(settings, given);
  return read.fault === undefined ? { where: leafCondition(column, operator, read.value, now) } : { fault: read.fault };
}

const textOperators: ReadonlySet<string> = new Set(['contains', 'starts', 'ends']);

function readOperand(
  settings: ColumnSettings,
  operator: WhereOperator,
  text: string,
  read: (settings: ColumnSettings, text: string) => ReadValue,
): ReadValue {
  if (operator === 'isnull') return text === 'true' || text === 'false' ? { value: text === 'true' } : { fault: 'must be true or false' };
  return textOperators.has(operator) ? { value: text } : read(settings, text);
}

/** Lists are joined by commas where no value can have one, or be nothing. */
function isJoined({ kind, values = [] }: ColumnSettings): boolean {
  return kind !== 'text' && !values.some((value) => value === '' || value.includes(','));
}

function splitList(text: string): string[] {
  return text === '' ? [] : text.split(',');
}

function sentence(fault: string): string {
  return `It ${fault}.`;
}

/** Reads a custom filter's parameter by its schema and asks it for its condition, on rows of the policy. */
export async function readCustomFilter(
  filter: CustomFilter,
  given: unknown,
  location: readonly (string | number)[],
  policy: Policy,
  caller: CrudCaller,
  faults: FieldError[],
): Promise<Where | undefined> {
  const result = await filter.schema['~standard'].validate(given);
  if (result.issues !== undefined) {
    for (const issue of result.issues) faults.push({ location, code: issue.code ?? 'invalid', message: issue.message });
    return undefined;
  }
  const owner = `filter "${String(location.at(-1))}" of resource(${policy.model.name})`;
  const where = ruleResult('filter', owner, await filter.where(result.value as never, caller)) as Where;
  // The schema may take more than the columns can store: a text that is too long, a number of more than 32 bits.
  if (policy.rows.canStoreValuesOf('filter', owner, where)) return where;
  faults.push({ location, code: 'invalid', message: 'No row can have this value.' });
  return undefined;
}

/** The text of a parameter as the custom filter's schema wants it: numbers and booleans out of text. */
export function coerceParameter(filter: CustomFilter, given: string | string[]): unknown {
  let coercion = coercions.get(filter);
  if (coercion === undefined) {
    const json = withRootDefinitions({ type: 'object', properties: { value: partSchemaOf(filter.schema, 'input') } });
    coercions.set(filter, (coercion = compileCoercions(json).get('value') ?? unchanged));
  }
  return coercion(given);
}

const coercions = new WeakMap<CustomFilter, (given: string | string[]) => unknown>();
const unchanged = (given: string | string[]): unknown => given;

/** How the parameter is documented. */
export function filterJsonSchema(parameter: FilterParameter, valuesMax: number): JsonSchema {
  if (parameter.kind === 'custom') {
    const schema = partSchemaOf(parameter.filter.schema, 'input');
    const description = parameter.filter.description ?? schema['description'] ?? 'Custom filter.';
    return { ...schema, description };
  }
  const { column, operator } = parameter;
  const own = filterValueJson(column.settings);
  const described = (schema: JsonSchema, text: string): JsonSchema =>
    markVisible({ ...schema, description: `${column.path} ${text}` }, column.column);
  switch (operator) {
    case 'in':
    case 'nin':
      return described(
        {
          type: 'array',
          items: own,
          minItems: 1,
          maxItems: valuesMax,
          ...(isJoined(column.settings) ? { 'x-style': 'comma' } : {}),
        },
        operator === 'in' ? 'is one of these.' : 'is not one of these.',
      );
    case 'isnull':
      return described({ type: 'boolean' }, 'is null (true) or is not null (false).');
    case 'contains':
    case 'starts':
    case 'ends':
      return described({ type: 'string' }, `${operator === 'contains' ? 'contains' : `${operator} with`} this string; A–Z match a–z.`);
    default:
      return described(own, OPERATOR_TEXT[operator]);
  }
}

/** A value that a filter compares with: what the column can hold, without what a new row would get. */
export function filterValueJson(settings: ColumnSettings): JsonSchema {
  const {
    readOnly: _readOnly,
    default: _default,
    description: _description,
    ...own
  } = columnJsonSchema({ ...settings, nullable: false }, 'input');
  return own;
}

/** What an operator takes in a tree of conditions. */
export function operandJson(value: JsonSchema, operator: WhereOperator, valuesMax: number): JsonSchema {
  switch (operator) {
    case 'in':
    case 'nin':
      return { type: 'array', items: value, minItems: 1, maxItems: valuesMax };
    case 'isnull':
      return { type: 'boolean' };
    case 'contains':
    case 'starts':
    case 'ends':
      return { type: 'string' };
    default:
      return value;
  }
}

const OPERATOR_TEXT: Readonly<Record<'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte', string>> = {
  eq: 'equals this.',
  ne: 'is not equal to this.',
  gt: 'is greater than this.',
  gte: 'is at least this.',
  lt: 'is less than this.',
  lte: 'is at most this.',
};

/** Operators that the kind of column has. */
export function fits(settings: ColumnSettings, operator: string): boolean {
  return (operatorsOf(settings) as readonly string[]).includes(operator);
}

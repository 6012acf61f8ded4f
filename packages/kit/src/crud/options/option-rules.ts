import { isErrorDefinition } from '../../errors/catalog.ts';
import { implementationOf, InvalidOptions, objectOf, type OptionRules, unknownNames, valueFaults } from '../../options/read-options.ts';
import type { Model } from '../../db/declare/model.ts';
import {
  aFunction,
  aModel,
  anything,
  either,
  filledText,
  flag,
  guards,
  instanceOf,
  isMembers,
  listOf,
  milliseconds,
  objectWith,
  oneOf,
  recordOf,
  required,
  rule,
  type ValueRule,
  wholeNumber,
  wrongValue,
} from '../../options/value-rule.ts';
import { Permission } from '../../permissions/permission.ts';
import { isDerived } from '../declare/derived.ts';
import { isCustomFilter } from '../declare/filter.ts';
import { type LimitOptions, limits } from '../declare/limits.ts';
import { isMetric } from '../declare/metric.ts';
import { isResource } from '../declare/resource.ts';
import type { SearchBackend } from '../declare/search-backend.ts';

type Rules = Readonly<Record<string, ValueRule>>;

export const aPermission = instanceOf(Permission, 'a permission, such as isStaff; call the factory: hasScopes()');
/** Every option of a resource decides who sees or does what, and so does every member of one. */
const part = (rules: Rules): ValueRule => objectOf(guards(rules));
const names = listOf(filledText);
const aRelation = rule(
  'one(() => model, column) or many(() => model, column)',
  (value) => isMembers(value) && (value['kind'] === 'one' || value['kind'] === 'many'),
);
const aFieldRule = rule('visibleTo(permission) or writableBy(permission)', (value) => isMembers(value) && 'hidden' in value);
const aSchema = rule('a Standard Schema', (value) => (isMembers(value) || typeof value === 'function') && '~standard' in (value as object));
const aCondition = rule('a condition as data, true or false', (value) => typeof value === 'boolean' || isMembers(value));

const aMissingError = rule(
  "an error with status 404 of your catalog: defineErrors('orders', { order_not_found: { status: 404, … } })",
  (value) => isErrorDefinition(value) && value.status === 404,
);

const scopeParts = part({ column: required(filledText), none: oneOf(''), unless: aPermission });
const aColumnOrRule = rule("a column, or { column, none: '', unless }", (value) => typeof value === 'string' && value.trim() !== '');
const aScopeRule: ValueRule = (value, place, name) => (isMembers(value) ? scopeParts : aColumnOrRule)(value, place, name);

const transition = part({
  from: required(listOf(anything)),
  to: required(anything),
  permission: aPermission,
  input: aSchema,
  guard: aFunction,
  on: oneOf('record', 'selection'),
  summary: filledText,
});
const action = part({
  on: oneOf('record', 'selection'),
  input: aSchema,
  permission: aPermission,
  audience: filledText,
  effects: oneOf('outside'),
  lock: oneOf(false),
  response: aSchema,
  status: wholeNumber(200, 299),
  raises: listOf(anything),
  summary: filledText,
  run: required(aFunction),
});
const audience = part({
  rows: required(either('true, a condition such as { status: "open" }, or a function', aCondition, aFunction)),
  tenant: oneOf('all'),
  access: oneOf(false),
});
const computedParts = part({
  requires: required(names),
  response: required(aSchema),
  value: aFunction,
  load: aFunction,
  ofRow: oneOf(true),
});
const computed: ValueRule = (value, place, name) => {
  if (isMembers(value) && isDerived(value)) return [];
  const faults = computedParts(value, place, name);
  if (faults.length > 0 || !isMembers(value) || 'value' in value !== 'load' in value) return faults;
  return [wrongValue(place, name, value, 'either value, for each row, or load, for the rows of a page')];
};

export const resourceRules: Rules = guards({
  name: filledText,
  tenant: aScopeRule,
  owner: aScopeRule,
  rows: aFunction,
  anonymous: aCondition,
  access: objectWith('an access rule, such as grants(…)', 'condition', 'actionOf'),
  unscoped: oneOf(true),
  changes: oneOf('trigger'),
  version: filledText,
  softDelete: either('true, false or { cascade }', flag, part({ cascade: names })),
  relations: recordOf(aRelation),
  input: names,
  hidden: names,
  fields: recordOf(aFieldRule),
  computed: recordOf(computed),
  shown: recordOf(computed),
  state: filledText,
  transitions: recordOf(transition),
  actions: recordOf(action),
  nested: recordOf(part({ input: required(names), missing: oneOf('keep', 'delete'), max: wholeNumber(1, 100) })),
  hooks: part({ create: aFunction, update: aFunction, destroy: aFunction, transition: aFunction }),
  validate: aFunction,
  writes: oneOf('verbs'),
  bodies: part({ create: required(aSchema), update: required(aSchema) }),
  once: recordOf(part({ on: required(listOf(filledText, { min: 1 })), description: filledText, nullable: oneOf(true) })),
  onChange: aFunction,
  audit: either('true, false, or { reads, exports }', flag, part({ reads: flag, exports: flag })),
  events: either('true, false, "tenant" or a function', flag, oneOf('tenant'), aFunction),
  missing: aMissingError,
  audiences: recordOf(audience),
  admin: audience,
  using: filledText,
});

const aFilter = rule(
  "a list of operators such as ['eq', 'in'], or filter(schema, where)",
  (value) => isCustomFilter(value) || (Array.isArray(value) && value.length > 0),
);
const aFileFormat = oneOf('csv', 'jsonl');
const fileFormats = listOf(aFileFormat, { min: 1 });
const pageSize = wholeNumber(1, 10_000);
/** Where a limit has a greatest value, a request that used more would be refused by something below: the database, the cursor or the parser. */
const limitRules: OptionRules<LimitOptions> = {
  offset: wholeNumber(1, 999_999_999),
  filters: wholeNumber(1, 500),
  listValues: wholeNumber(1, limits.allListValues),
  whereDepth: wholeNumber(1, 8),
  whereLeaves: wholeNumber(1, 500),
  searchLength: wholeNumber(1, 10_000),
  searchWords: wholeNumber(1, 100),
  orderingColumns: wholeNumber(1, 10),
  expandDepth: wholeNumber(1, 10),
  expandPaths: wholeNumber(1, 200),
  expandRows: wholeNumber(1),
  statsGroups: wholeNumber(1, 100),
  statsMetrics: wholeNumber(1, 100),
  statsRows: wholeNumber(1, 1_000_000),
  importErrors: wholeNumber(1),
};

const aField = rule('the name of a class field, such as "read"', (value) => typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value));
const addedFacts = guards({ permission: aPermission, throttles: anything, path: filledText, field: aField });
const operationFacts: ValueRule = (value, place, name) => {
  if (value === false) return [];
  if (!isMembers(value)) return [wrongValue(place, name, value, 'false, or facts of the operation')];
  return valueFaults(place, value, addedFacts, `${name}.`);
};

export const controllerRules: Rules = guards({
  permission: required(aPermission),
  audience: filledText,
  using: filledText,
  readFrom: filledText,
  scope: either(
    'a string such as "orders", or { read, write }',
    filledText,
    part({ read: required(filledText), write: required(filledText) }),
  ),
  lookup: filledText,
  parent: part({ relation: required(filledText), param: filledText }),
  input: names,
  output: names,
  filters: recordOf(aFilter),
  search: either(
    'a list of columns, or a search backend such as fullText({ columns })',
    names,
    implementationOf<SearchBackend>('a search backend: { name, columns, where }', {
      name: required(filledText),
      columns: required(names),
      description: filledText,
      where: required(aFunction),
      faults: aFunction,
      check: aFunction,
      words: aFunction,
    }),
  ),
  ordering: part({ by: required(names), default: names }),
  sparse: oneOf(false),
  expand: names,
  page: part({
    style: oneOf('cursor', 'offset', 'page'),
    default: pageSize,
    max: pageSize,
    count: either(
      "'exact', 'none', 'estimate' or { upTo }",
      oneOf('exact', 'none', 'estimate'),
      part({ upTo: required(wholeNumber(1, 1_000_000)) }),
    ),
    keyCursors: flag,
  }),
  limits: objectOf(limitRules),
  etag: oneOf('required', 'optional', false),
  queryMethod: flag,
  export: either(
    "a list of 'csv' and 'jsonl', or { formats, rowsMax, idleMs, durationMs }",
    fileFormats,
    part({ formats: required(fileFormats), rowsMax: wholeNumber(1), idleMs: milliseconds(1), durationMs: milliseconds(1) }),
  ),
  restore: flag,
  idempotency: oneOf('optional', 'required', false),
  bulk: part({ create: flag, update: flag, destroy: flag, mode: oneOf('atomic', 'partial'), max: wholeNumber(1, 1000) }),
  import: part({ formats: required(fileFormats), by: filledText, bytesMax: wholeNumber(1), rowsMax: wholeNumber(1, 100_000) }),
  stats: part({
    by: names,
    metrics: required(recordOf(rule("a metric such as count() or sum('total')", isMetric))),
  }),
  meta: flag,
  live: flag,
  liveWithout: names,
  operations: recordOf(operationFacts),
});

export function checkOptions(place: string, options: unknown, rules: Rules): void {
  if (!isMembers(options)) throw new InvalidOptions([{ id: 'E011', message: `${place}: takes an options object.` }]);
  const faults = [...unknownNames(place, options, Object.keys(rules)), ...valueFaults(place, options, rules)];
  if (faults.length > 0) throw new InvalidOptions(faults);
}

/** Unknown options fail where they are written; the message for an option of `resource()` says where it belongs. */
export function checkControllerOptions(options: unknown): void {
  const place = 'CrudController()';
  if (!isMembers(options)) return checkOptions(place, options, controllerRules);
  const names = Object.keys(options);
  const moved = names.filter((name) => Object.hasOwn(resourceRules, name) && !Object.hasOwn(controllerRules, name));
  if (moved.length === 0) return checkOptions(place, options, controllerRules);
  const others = Object.fromEntries(Object.entries(options).filter(([name]) => !moved.includes(name)));
  throw new InvalidOptions([
    ...moved.map((name) => ({
      id: 'E001',
      message: `${place}: "${name}" is an option of resource().`,
      hint: `Move it: CrudController(resource(model, { ${name}: … }), { … }).`,
    })),
    ...unknownNames(place, others, Object.keys(controllerRules)),
    ...valueFaults(place, others, controllerRules),
  ]);
}

/** The first argument of `CrudController()`. A bare model defines no row rule, so it must be wrapped. */
export function requireResource(source: unknown): void {
  if (isResource(source)) return;
  const isModel = aModel(source, '', '').length === 0;
  const given = isModel ? `the model "${(source as Model).name}"` : source === undefined ? 'missing' : `a value of type ${typeof source}`;
  throw new InvalidOptions([
    {
      id: 'E011',
      message: `CrudController(): the first argument is ${given}, but must be a resource.`,
      hint: `Declare which rows callers can see: CrudController(resource(${isModel ? (source as Model).name : 'model'}, { owner: 'owner_id' }), { … }).`,
    },
  ]);
}

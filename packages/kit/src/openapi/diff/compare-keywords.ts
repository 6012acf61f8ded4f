import { isMembers } from '../../options/value-rule.ts';
import type { Json } from './flat-schema.ts';
import type { Aspect, Trend } from './rules.ts';
import { listed, names, type SchemaReporter, shortened } from './schema-reporter.ts';

/** What tells alternatives apart, and the alternative that each of its values stands for. */
export function compareDiscriminators(a: Json, b: Json, report: SchemaReporter): void {
  const [before, after] = [a['discriminator'], b['discriminator']];
  if (!isMembers(before)) return;
  if (!isMembers(after)) return report.say('discriminator-changed', null, 'is not told apart by a property any more.');
  const [told, tells] = [before, after].map(({ propertyName }) => JSON.stringify(propertyName));
  if (told !== tells) return report.say('discriminator-changed', null, `is told apart by ${tells}, was by ${told}.`);
  const [old, now] = [before, after].map(({ mapping }) => (isMembers(mapping) ? mapping : {})) as [Json, Json];
  const place = (target: unknown) => String(target).split('/').at(-1);
  for (const [value, target] of Object.entries(old)) {
    // Without a mapping, a value is the name of a schema.
    const current = Object.hasOwn(now, value) ? place(now[value]) : value;
    if (current !== place(target))
      report.say('discriminator-changed', null, `has ${JSON.stringify(value)} for ${current}, was for ${place(target)}.`);
  }
}

export function compareDefaults(a: Json, b: Json, report: SchemaReporter): void {
  if (report.direction === 'output') return;
  const [old, now] = [JSON.stringify(a['default']), JSON.stringify(b['default'])];
  if (old !== now)
    report.say('input-default-changed', 'narrowed', `has the default ${shortened(now) ?? 'none'}, was ${shortened(old) ?? 'none'}.`);
}

/** False when no type is left to compare by other keywords. */
export function compareTypes(a: Json, b: Json, report: SchemaReporter): boolean {
  const [before, after] = [a['type'], b['type']] as [string[] | undefined, string[] | undefined];
  if (before === undefined && after === undefined) return true;
  if (before === undefined) {
    report.trend('type', 'narrowed', `is ${names(after)} now, and could be anything.`);
    return false;
  }
  if (after === undefined) {
    report.trend('type', 'widened', `can be anything now, was ${names(before)}.`);
    return false;
  }
  const isCovered = (type: string, by: readonly string[]) => by.includes(type) || (type === 'integer' && by.includes('number'));
  const [gone, come] = [before.filter((type) => !isCovered(type, after)), after.filter((type) => !isCovered(type, before))];
  const split = (types: readonly string[], trend: Trend, say: (types: readonly string[]) => string) => {
    const others = types.filter((type) => type !== 'null');
    if (types.includes('null')) report.trend('null', trend, say(['null']));
    if (others.length > 0) report.trend('type', trend, say(others));
  };
  split(gone, 'narrowed', (types) => `cannot be ${names(types)} any more.`);
  split(come, 'widened', (types) => `can be ${names(types)} now.`);
  return before.some((type) => type !== 'null' && (isCovered(type, after) || (type === 'number' && after.includes('integer'))));
}

function compareValues(a: Json, b: Json, report: SchemaReporter): void {
  const values = ({ enum: given }: Json) =>
    Array.isArray(given) ? given.filter((value) => value !== null).map((value) => JSON.stringify(value)) : undefined;
  const [before, after] = [values(a), values(b)];
  if (before === undefined && after === undefined) return;
  if (before === undefined) return report.trend('values', 'narrowed', `is one of ${listed(after ?? [])} now.`);
  if (after === undefined) return report.trend('values', 'widened', `is no longer limited to ${listed(before)}.`);
  const [known, now] = [new Set(before), new Set(after)];
  const [gone, come] = [before.filter((value) => !now.has(value)), after.filter((value) => !known.has(value))];
  if (gone.length > 0) report.trend('values', 'narrowed', `cannot be ${listed(gone)} any more.`);
  if (come.length > 0) report.trend('values', 'widened', `can be ${listed(come)} now.`);
}

/** A larger value of the first kind admits less, of the second kind more. */
const BOUNDS: readonly (readonly [keyword: string, aspect: Aspect, sign: 1 | -1])[] = [
  ['minLength', 'length', 1],
  ['maxLength', 'length', -1],
  ['minItems', 'count', 1],
  ['maxItems', 'count', -1],
  ['minProperties', 'count', 1],
  ['maxProperties', 'count', -1],
];

interface Limit {
  readonly keyword: string;
  readonly value: number;
  readonly isOpen: boolean;
}

/** The stricter one of `minimum` and `exclusiveMinimum` (sign 1), or of the maxima (sign -1). Of integers, `> 0` is `>= 1`. */
function limitOf(schema: Json, name: 'Minimum' | 'Maximum', sign: 1 | -1): Limit | undefined {
  const isInteger = String(schema['type']) === 'integer';
  const limits = [name.toLowerCase(), `exclusive${name}`].flatMap((keyword, index): Limit[] => {
    const given: unknown = schema[keyword];
    if (typeof given !== 'number') return [];
    const isOpen = index === 1;
    if (!isInteger) return [{ keyword, value: given, isOpen }];
    const nearest = sign * Math.ceil(sign * given);
    return [{ keyword, value: isOpen && nearest === given ? given + sign : nearest, isOpen: false }];
  });
  return limits.reduce<Limit | undefined>(
    (strict, each) => (strict === undefined || isStricter(each, strict, sign) ? each : strict),
    undefined,
  );
}

function isStricter(one: Limit, other: Limit, sign: 1 | -1): boolean {
  return one.value === other.value ? one.isOpen && !other.isOpen : (one.value - other.value) * sign > 0;
}

function compareLimits(a: Json, b: Json, report: SchemaReporter): void {
  for (const [name, sign] of [
    ['Minimum', 1],
    ['Maximum', -1],
  ] as const) {
    const [before, after] = [limitOf(a, name, sign), limitOf(b, name, sign)];
    if (after === undefined) {
      if (before !== undefined) report.trend('range', 'widened', `has no ${before.keyword} any more.`);
    } else if (before?.value !== after.value || before.isOpen !== after.isOpen) {
      const isNarrower = before === undefined || isStricter(after, before, sign);
      const said = (schema: Json, { keyword }: Limit) => `${keyword} ${String(schema[keyword])}`;
      const was = before === undefined ? '' : `, was ${before.keyword === after.keyword ? String(a[before.keyword]) : said(a, before)}`;
      report.trend('range', isNarrower ? 'narrowed' : 'widened', `has ${said(b, after)}${was}.`);
    }
  }
}

function compareNumbers(a: Json, b: Json, report: SchemaReporter): void {
  compareLimits(a, b, report);
  for (const [keyword, aspect, sign] of BOUNDS) {
    const none = keyword.startsWith('min') ? 0 : undefined;
    const [before, after] = [a[keyword] ?? none, b[keyword] ?? none];
    if (before === after) continue;
    if (typeof after !== 'number') report.trend(aspect, 'widened', `has no ${keyword} any more.`);
    else {
      const isNarrower = typeof before !== 'number' || (after - before) * sign > 0;
      const was = typeof before === 'number' ? `, was ${before}` : '';
      report.trend(aspect, isNarrower ? 'narrowed' : 'widened', `has ${keyword} ${after}${was}.`);
    }
  }
  const [step, now] = [a['multipleOf'], b['multipleOf']];
  if (typeof step === 'number' && typeof now === 'number' && step !== now) {
    if (isMultiple(now, step)) report.trend('range', 'narrowed', `has multipleOf ${now}, was ${step}.`);
    else if (isMultiple(step, now)) report.trend('range', 'widened', `has multipleOf ${now}, was ${step}.`);
    else report.changed('range', `has multipleOf ${now}, was ${step}.`);
  } else report.keyword('range', 'multipleOf', step, now);
  report.keyword('count', 'uniqueItems', a['uniqueItems'], b['uniqueItems']);
}

const isMultiple = (value: number, of: number): boolean => Math.abs(value / of - Math.round(value / of)) < 1e-9;

/** Formats whose values all belong to another format. */
const WIDER_FORMATS: Readonly<Record<string, readonly string[]>> = {
  int32: ['int64'],
  float: ['double'],
  hostname: ['idn-hostname'],
  email: ['idn-email'],
  uri: ['uri-reference', 'iri', 'iri-reference'],
};

/** The most digits before and after the point, of a pattern of decimal columns. */
function digitsOf(pattern: unknown): readonly [whole: number, fraction: number] | undefined {
  const match = /^\^-\?(?:0|\[0-9\]\{1,(\d+)\})(?:\(\?:\\\.\[0-9\]\{1,(\d+)\}\)\?)?\$$/.exec(String(pattern));
  return match === null ? undefined : [Number(match[1] ?? 0), Number(match[2] ?? 0)];
}

/** Patterns cannot be compared, except those of decimals: more digits are more numbers. */
function comparePatterns(before: unknown, after: unknown, report: SchemaReporter): void {
  const [old, now] = [digitsOf(before), digitsOf(after)];
  const grows = old !== undefined && now !== undefined && now[0] >= old[0] && now[1] >= old[1];
  const shrinks = old !== undefined && now !== undefined && now[0] <= old[0] && now[1] <= old[1];
  if (grows === shrinks) return report.keyword('pattern', 'pattern', before, after);
  const digits = ([whole, fraction]: readonly [number, number]) => `${whole} digits before the point and ${fraction} after it`;
  report.trend('pattern', grows ? 'widened' : 'narrowed', `has at most ${digits(now!)}, was ${digits(old!)}.`);
}

function compareTexts(a: Json, b: Json, report: SchemaReporter): void {
  comparePatterns(a['pattern'], b['pattern'], report);
  const [before, after] = [a['format'], b['format']] as [string | undefined, string | undefined];
  if (before !== undefined && after !== undefined && WIDER_FORMATS[before]?.includes(after))
    report.trend('format', 'widened', `has format ${after}, was ${before}.`);
  else if (before !== undefined && after !== undefined && WIDER_FORMATS[after]?.includes(before))
    report.trend('format', 'narrowed', `has format ${after}, was ${before}.`);
  else report.keyword('format', 'format', before, after);
  for (const name of ['contentMediaType', 'contentEncoding']) report.keyword('format', name, a[name], b[name]);
}

const CONDITIONS = [
  'not',
  'if',
  'then',
  'else',
  'contains',
  'minContains',
  'maxContains',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  'unevaluatedItems',
];

function compareConditions(a: Json, b: Json, report: SchemaReporter): void {
  for (const name of CONDITIONS) report.keyword('condition', name, a[name], b[name]);
}
/** The keywords that decide about values of a type which both schemas have. */
export function compareKeywords(a: Json, b: Json, report: SchemaReporter): void {
  compareValues(a, b, report);
  compareNumbers(a, b, report);
  compareTexts(a, b, report);
  compareConditions(a, b, report);
}

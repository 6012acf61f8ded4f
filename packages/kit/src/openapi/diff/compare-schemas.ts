import { type FlatSchemas, isObject, type Json, pureReference } from './flat-schema.ts';
import type { Aspect, DiffRuleId, Direction, Trend } from './rules.ts';

/** One difference below a schema. */
export interface Finding {
  readonly id: DiffRuleId;
  /** Whether the schema admits fewer values for it, or more; null where that cannot be decided. */
  readonly trend: Trend | null;
  /** Below the schema: `items[].sku`. */
  readonly place: string;
  /** The named schema it is in, and the place there: `Order.total`. */
  readonly component?: string | undefined;
  readonly message: string;
}

/** The differences of two schemas up to the next references, and where those lead. */
interface Fragment {
  readonly component: string | undefined;
  readonly findings: Finding[];
  readonly links: { readonly place: string; readonly fragment: Fragment }[];
}

/**
 * Compares schemas of two documents: the server may accept more and return less. The fragments between references are compared once per document,
 * however often they are used, so the time grows with the size of the documents and not with the number of operations times their schemas.
 */
export class SchemaComparison {
  readonly #direction: Direction;
  readonly #before: FlatSchemas;
  readonly #after: FlatSchemas;
  readonly #fragments = new Map<string, Fragment>();
  /** Fragments below which nothing changed. */
  readonly #unchanged = new Set<Fragment>();
  /** Fragments that are known and not compared yet. */
  readonly #pending: (() => void)[] = [];
  readonly #ids = new WeakMap<object, number>();
  #lastId = 0;

  constructor(direction: Direction, before: FlatSchemas, after: FlatSchemas) {
    this.#direction = direction;
    this.#before = before;
    this.#after = after;
  }

  /** A pair of named schemas is reported at the first place that uses it. */
  compare(before: unknown, after: unknown): Finding[] {
    const start = this.#fragment(before ?? {}, after ?? {});
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) next();
    const found: Finding[] = [];
    const seen = new Set<Fragment>();
    const walk = (fragment: Fragment, at: string): void => {
      if (seen.has(fragment) || this.#unchanged.has(fragment)) return;
      seen.add(fragment);
      const { component, findings, links } = fragment;
      for (const finding of findings)
        found.push({
          ...finding,
          place: joined(at, finding.place),
          component: component === undefined ? undefined : joined(component, finding.place),
        });
      for (const { place, fragment: below } of links) walk(below, joined(at, place));
    };
    walk(start, '');
    if (found.length === 0) for (const fragment of seen) this.#unchanged.add(fragment);
    return found;
  }

  #fragment(before: unknown, after: unknown): Fragment {
    const key = `${this.#key(before)} ${this.#key(after)}`;
    const known = this.#fragments.get(key);
    if (known !== undefined) return known;
    const fragment: Fragment = { component: pureReference(before)?.split('/').at(-1), findings: [], links: [] };
    this.#fragments.set(key, fragment);
    this.#pending.push(() => this.#compareFlat(this.#before.of(before), this.#after.of(after), '', fragment));
    return fragment;
  }

  #key(schema: unknown): string {
    const reference = pureReference(schema);
    if (reference !== undefined) return reference;
    if (!isObject(schema)) return String(schema);
    const known = this.#ids.get(schema) ?? ++this.#lastId;
    this.#ids.set(schema, known);
    return String(known);
  }

  /** Whether all values of one alternative belong to the other. */
  #covers(wide: unknown, narrow: unknown, side: 'before' | 'after'): boolean {
    const schemas = side === 'before' ? this.#before : this.#after;
    const other = side === 'before' ? this.#after : this.#before;
    const comparison = new SchemaComparison(this.#direction, schemas, other);
    return comparison.compare(wide, narrow).every(({ trend }) => trend === 'narrowed');
  }

  #compareFlat(a: Json, b: Json, place: string, out: Fragment): void {
    if (Array.isArray(a['anyOf']) || Array.isArray(b['anyOf'])) return this.#compareUnions(a, b, place, out);
    const report = new Reporter(this.#direction, place, out);
    compareDefaults(a, b, report);
    if (!compareTypes(a, b, report)) return;
    compareValues(a, b, report);
    compareNumbers(a, b, report);
    compareTexts(a, b, report);
    compareConditions(a, b, report);
    // The JSON in a text, such as the data of an event.
    this.#compareBelow('contentSchema', a, b, report.place, report);
    this.#compareBelow('propertyNames', a, b, `${report.place}{name}`, report);
    this.#compareObjects(a, b, report);
    this.#compareArrays(a, b, report);
  }

  #link(before: unknown, after: unknown, place: string, out: Fragment): void {
    const hasReference = (schema: unknown) => isObject(schema) && ('$ref' in schema || 'allOf' in schema);
    if (hasReference(before) || hasReference(after)) out.links.push({ place, fragment: this.#fragment(before ?? {}, after ?? {}) });
    else this.#compareFlat(this.#before.of(before), this.#after.of(after), place, out);
  }

  /** The schema of a keyword that takes values away, where it is on both sides. */
  #compareBelow(keyword: string, a: Json, b: Json, place: string, report: Reporter): void {
    if (isObject(a[keyword]) && isObject(b[keyword])) this.#link(a[keyword], b[keyword], place, report.out);
    else report.keyword('condition', keyword, a[keyword], b[keyword]);
  }

  #compareUnions(a: Json, b: Json, place: string, out: Fragment): void {
    const report = new Reporter(this.#direction, place, out);
    compareDiscriminators(a, b, report);
    compareDefaults(a, b, report);
    const [old, current] = [[...this.#before.alternativesOf(a)], [...this.#after.alternativesOf(b)]];
    const pair = (labelOf: (branch: unknown, schemas: FlatSchemas) => string | undefined) => {
      for (const branch of old.slice()) {
        const label = labelOf(branch, this.#before);
        const match = label === undefined ? -1 : current.findIndex((other) => labelOf(other, this.#after) === label);
        if (match < 0) continue;
        this.#link(branch, current[match], place, out);
        current.splice(match, 1);
        old.splice(old.indexOf(branch), 1);
      }
    };
    pair((branch) => JSON.stringify(branch));
    pair((branch) => pureReference(branch));
    pair((branch, schemas) => tagOf(schemas.of(branch)));
    // One alternative of a type on each side is the same alternative, changed.
    const types = (branches: readonly unknown[], schemas: FlatSchemas) => Map.groupBy(branches, (branch) => typeOf(schemas.of(branch)));
    const [oldTypes, newTypes] = [types(old, this.#before), types(current, this.#after)];
    pair((branch, schemas) => {
      const type = typeOf(schemas.of(branch));
      return type !== undefined && oldTypes.get(type)?.length === 1 && newTypes.get(type)?.length === 1 ? type : undefined;
    });
    const [everyOld, everyNew] = [this.#before.alternativesOf(a), this.#after.alternativesOf(b)];
    for (const branch of old)
      if (!valuesOf(branch, this.#before).every((part) => everyNew.some((other) => this.#covers(other, part, 'after'))))
        report.trend(
          isNull(this.#before.of(branch)) ? 'null' : 'union',
          'narrowed',
          `cannot be ${described(branch, this.#before)} any more.`,
        );
    for (const branch of current)
      if (!valuesOf(branch, this.#after).every((part) => everyOld.some((other) => this.#covers(other, part, 'before'))))
        report.trend(isNull(this.#after.of(branch)) ? 'null' : 'union', 'widened', `can be ${described(branch, this.#after)} now.`);
  }

  #compareObjects(a: Json, b: Json, report: Reporter): void {
    const hidden = this.#direction === 'input' ? 'readOnly' : 'writeOnly';
    const members = ({ properties }: Json, schemas: FlatSchemas) =>
      Object.fromEntries(
        Object.entries(isObject(properties) ? properties : {}).filter(([, schema]) => schemas.of(schema)[hidden] !== true),
      );
    const [before, after] = [members(a, this.#before), members(b, this.#after)];
    const [needed, needs] = [requiredOf(a), requiredOf(b)];
    const [wasOpen, isOpen] = [openness(a), openness(b)];
    for (const [name, schema] of Object.entries(before)) {
      const at = report.below(name);
      if (!Object.hasOwn(after, name)) {
        if (this.#direction === 'input' && isOpen !== false) at.say('input-property-ignored', 'widened', 'is not documented any more.');
        else at.say(`${this.#direction}-property-removed`, 'narrowed', 'was removed.');
        continue;
      }
      if (!needed.has(name) && needs.has(name)) at.say(`${this.#direction}-property-required`, 'narrowed', 'is required now.');
      if (needed.has(name) && !needs.has(name)) at.say(`${this.#direction}-property-optional`, 'widened', 'is optional now.');
      const [old, current] = [this.#before.of(schema), this.#after.of(after[name])];
      if (old['deprecated'] !== true && current['deprecated'] === true) at.say('property-deprecated', 'narrowed', 'is deprecated.');
      this.#link(schema, after[name], at.place, at.out);
    }
    // What is required need not be listed.
    const known = new Set([a, b].flatMap(({ properties }) => Object.keys(isObject(properties) ? properties : {})));
    for (const name of needs)
      if (!needed.has(name) && !known.has(name))
        report.below(name).say(`${this.#direction}-property-required`, 'narrowed', 'is required now.');
    for (const name of needed)
      if (!needs.has(name) && !known.has(name))
        report.below(name).say(`${this.#direction}-property-optional`, 'widened', 'is optional now.');
    for (const name of Object.keys(after)) {
      if (Object.hasOwn(before, name)) continue;
      const isNeeded = this.#direction === 'input' && needs.has(name);
      report
        .below(name)
        .say(
          isNeeded ? 'input-property-required' : `${this.#direction}-property-added`,
          isNeeded ? null : 'widened',
          isNeeded ? 'is new and required.' : 'is new.',
        );
    }
    if (wasOpen !== false && isOpen === false && this.#isObject(a, b))
      report.trend('additional', 'narrowed', 'has no unlisted properties any more.');
    else if (wasOpen === false && isOpen !== false) report.trend('additional', 'widened', 'may have unlisted properties now.');
    else if (isObject(wasOpen) || isObject(isOpen)) this.#link(wasOpen, isOpen, `${report.place}{}`, report.out);
  }

  #isObject(a: Json, b: Json): boolean {
    return [a, b].some((schema) => isObject(schema['properties']) || typeOf(schema) === 'object');
  }

  #compareArrays(a: Json, b: Json, report: Reporter): void {
    const [before, after] = [a, b].map(({ prefixItems }) => (Array.isArray(prefixItems) ? (prefixItems as unknown[]) : [])) as [
      unknown[],
      unknown[],
    ];
    for (let index = 0; index < Math.max(before.length, after.length); index += 1) {
      const side = (list: unknown[], rest: unknown) => (index < list.length ? list[index] : (rest ?? {}));
      this.#link(side(before, a['items']), side(after, b['items']), `${report.place}[${index}]`, report.out);
    }
    const [items, now] = [a['items'], b['items']];
    if (items === false || now === false) {
      if (items !== now)
        report.trend('count', now === false ? 'narrowed' : 'widened', `has ${now === false ? 'no' : ''} further items now.`);
    } else if (isObject(items) || isObject(now)) this.#link(items ?? {}, now ?? {}, `${report.place}[]`, report.out);
  }
}

class Reporter {
  readonly #direction: Direction;
  readonly place: string;
  readonly out: Fragment;

  constructor(direction: Direction, place: string, out: Fragment) {
    this.#direction = direction;
    this.place = place;
    this.out = out;
  }

  get direction(): Direction {
    return this.#direction;
  }

  below(name: string): Reporter {
    return new Reporter(this.#direction, joined(this.place, name), this.out);
  }

  say(id: DiffRuleId, trend: Trend | null, message: string): void {
    this.out.findings.push({ id, trend, place: this.place, message });
  }

  trend(aspect: Aspect, trend: Trend, message: string): void {
    this.say(`${this.#direction}-${aspect}-${trend}`, trend, message);
  }

  /** Neither wider nor narrower as far as can be told: the worse of both. */
  changed(aspect: Aspect, message: string): void {
    this.say(`${this.#direction}-${aspect}-${this.#direction === 'input' ? 'narrowed' : 'widened'}`, null, message);
  }

  /** A keyword that only takes values away: added, removed or replaced. */
  keyword(aspect: Aspect, name: string, before: unknown, after: unknown): void {
    const [old, now] = [JSON.stringify(before), JSON.stringify(after)];
    if (old === now) return;
    if (after === undefined || after === false) this.trend(aspect, 'widened', `has no ${name} any more.`);
    else if (before === undefined || before === false) this.trend(aspect, 'narrowed', `has ${name} ${shortened(now)} now.`);
    else this.changed(aspect, `has ${name} ${shortened(now)}, was ${shortened(old)}.`);
  }
}

/** What tells alternatives apart, and the alternative that each of its values stands for. */
function compareDiscriminators(a: Json, b: Json, report: Reporter): void {
  const [before, after] = [a['discriminator'], b['discriminator']];
  if (!isObject(before)) return;
  if (!isObject(after)) return report.say('discriminator-changed', null, 'is not told apart by a property any more.');
  const [told, tells] = [before, after].map(({ propertyName }) => JSON.stringify(propertyName));
  if (told !== tells) return report.say('discriminator-changed', null, `is told apart by ${tells}, was by ${told}.`);
  const [old, now] = [before, after].map(({ mapping }) => (isObject(mapping) ? mapping : {})) as [Json, Json];
  const place = (target: unknown) => String(target).split('/').at(-1);
  for (const [value, target] of Object.entries(old)) {
    // Without a mapping, a value is the name of a schema.
    const current = Object.hasOwn(now, value) ? place(now[value]) : value;
    if (current !== place(target))
      report.say('discriminator-changed', null, `has ${JSON.stringify(value)} for ${current}, was for ${place(target)}.`);
  }
}

function compareDefaults(a: Json, b: Json, report: Reporter): void {
  if (report.direction === 'output') return;
  const [old, now] = [JSON.stringify(a['default']), JSON.stringify(b['default'])];
  if (old !== now)
    report.say('input-default-changed', 'narrowed', `has the default ${shortened(now) ?? 'none'}, was ${shortened(old) ?? 'none'}.`);
}

/** False when no type is left to compare by other keywords. */
function compareTypes(a: Json, b: Json, report: Reporter): boolean {
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

function compareValues(a: Json, b: Json, report: Reporter): void {
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

function compareLimits(a: Json, b: Json, report: Reporter): void {
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

function compareNumbers(a: Json, b: Json, report: Reporter): void {
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
function comparePatterns(before: unknown, after: unknown, report: Reporter): void {
  const [old, now] = [digitsOf(before), digitsOf(after)];
  const grows = old !== undefined && now !== undefined && now[0] >= old[0] && now[1] >= old[1];
  const shrinks = old !== undefined && now !== undefined && now[0] <= old[0] && now[1] <= old[1];
  if (grows === shrinks) return report.keyword('pattern', 'pattern', before, after);
  const digits = ([whole, fraction]: readonly [number, number]) => `${whole} digits before the point and ${fraction} after it`;
  report.trend('pattern', grows ? 'widened' : 'narrowed', `has at most ${digits(now!)}, was ${digits(old!)}.`);
}

function compareTexts(a: Json, b: Json, report: Reporter): void {
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

function compareConditions(a: Json, b: Json, report: Reporter): void {
  for (const name of CONDITIONS) report.keyword('condition', name, a[name], b[name]);
}

function requiredOf({ required }: Json): ReadonlySet<string> {
  return new Set(Array.isArray(required) ? required.map(String) : []);
}

/** What properties that are not listed may be: false, any (true) or a schema. */
function openness({ additionalProperties, unevaluatedProperties }: Json): boolean | Json {
  if (additionalProperties === false || unevaluatedProperties === false) return false;
  if (isObject(additionalProperties) && Object.keys(additionalProperties).length > 0) return additionalProperties;
  return true;
}

/** The value by which an alternative is known: its first required property with one possible value. */
function tagOf(flat: Json): string | undefined {
  const { properties } = flat;
  if (!isObject(properties)) return undefined;
  for (const name of requiredOf(flat)) {
    const schema = properties[name];
    if (!isObject(schema)) continue;
    const values = 'const' in schema ? [schema['const']] : schema['enum'];
    if (Array.isArray(values) && values.length === 1) return `${name} ${JSON.stringify(values[0])}`;
  }
  return undefined;
}

function typeOf({ type }: Json): string | undefined {
  return Array.isArray(type) && type.length === 1 ? String(type[0]) : undefined;
}

/** A list of values as schemas of one value each: several alternatives together may cover it. */
function valuesOf(branch: unknown, schemas: FlatSchemas): readonly unknown[] {
  const flat = schemas.of(branch);
  const { enum: values } = flat;
  return Array.isArray(values) && values.length > 1 ? values.map((value: unknown) => ({ allOf: [flat, { enum: [value] }] })) : [branch];
}

const isNull = (flat: Json): boolean => typeOf(flat) === 'null';

function described(branch: unknown, schemas: FlatSchemas): string {
  const flat = schemas.of(branch);
  const { title, type } = flat;
  const tag = tagOf(flat);
  return (
    pureReference(branch)?.split('/').at(-1) ??
    tag ??
    (typeof title === 'string' ? title : Array.isArray(type) ? names(type as string[]) : 'anything')
  );
}

const names = (types: readonly string[] | undefined): string => (types?.length === 0 ? 'nothing' : (types?.join(' or ') ?? 'anything'));
const LISTED_MAX = 10;
const listed = (values: readonly string[]): string =>
  values.length > LISTED_MAX ? `${values.slice(0, LISTED_MAX).join(', ')} and ${values.length - LISTED_MAX} more` : values.join(', ');
const SHOWN_MAX = 120;
const shortened = (text: string | undefined): string | undefined =>
  text === undefined || text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;

function joined(place: string, below: string): string {
  if (place === '' || below === '') return place + below;
  return below.startsWith('[') || below.startsWith('{') ? place + below : `${place}.${below}`;
}

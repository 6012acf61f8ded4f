import { isMembers } from '../../options/value-rule.ts';
import { compareDefaults, compareDiscriminators, compareKeywords, compareTypes } from './compare-keywords.ts';
import { type FlatSchemas, type Json, pureReference } from './flat-schema.ts';
import type { Direction } from './rules.ts';
import { type Finding, type Fragment, joined, names, SchemaReporter } from './schema-reporter.ts';

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
    if (!isMembers(schema)) return String(schema);
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
    const report = new SchemaReporter(this.#direction, place, out);
    compareDefaults(a, b, report);
    if (!compareTypes(a, b, report)) return;
    compareKeywords(a, b, report);
    // The JSON in a text, such as the data of an event.
    this.#compareBelow('contentSchema', a, b, report.place, report);
    this.#compareBelow('propertyNames', a, b, `${report.place}{name}`, report);
    this.#compareObjects(a, b, report);
    this.#compareArrays(a, b, report);
  }

  #link(before: unknown, after: unknown, place: string, out: Fragment): void {
    const hasReference = (schema: unknown) => isMembers(schema) && ('$ref' in schema || 'allOf' in schema);
    if (hasReference(before) || hasReference(after)) out.links.push({ place, fragment: this.#fragment(before ?? {}, after ?? {}) });
    else this.#compareFlat(this.#before.of(before), this.#after.of(after), place, out);
  }

  /** The schema of a keyword that takes values away, where it is on both sides. */
  #compareBelow(keyword: string, a: Json, b: Json, place: string, report: SchemaReporter): void {
    if (isMembers(a[keyword]) && isMembers(b[keyword])) this.#link(a[keyword], b[keyword], place, report.out);
    else report.keyword('condition', keyword, a[keyword], b[keyword]);
  }

  #compareUnions(a: Json, b: Json, place: string, out: Fragment): void {
    const report = new SchemaReporter(this.#direction, place, out);
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

  #compareObjects(a: Json, b: Json, report: SchemaReporter): void {
    const hidden = this.#direction === 'input' ? 'readOnly' : 'writeOnly';
    const members = ({ properties }: Json, schemas: FlatSchemas) =>
      Object.fromEntries(
        Object.entries(isMembers(properties) ? properties : {}).filter(([, schema]) => schemas.of(schema)[hidden] !== true),
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
    const known = new Set([a, b].flatMap(({ properties }) => Object.keys(isMembers(properties) ? properties : {})));
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
    else if (isMembers(wasOpen) || isMembers(isOpen)) this.#link(wasOpen, isOpen, `${report.place}{}`, report.out);
  }

  #isObject(a: Json, b: Json): boolean {
    return [a, b].some((schema) => isMembers(schema['properties']) || typeOf(schema) === 'object');
  }

  #compareArrays(a: Json, b: Json, report: SchemaReporter): void {
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
    } else if (isMembers(items) || isMembers(now)) this.#link(items ?? {}, now ?? {}, `${report.place}[]`, report.out);
  }
}
function requiredOf({ required }: Json): ReadonlySet<string> {
  return new Set(Array.isArray(required) ? required.map(String) : []);
}

/** What properties that are not listed may be: false, any (true) or a schema. */
function openness({ additionalProperties, unevaluatedProperties }: Json): boolean | Json {
  if (additionalProperties === false || unevaluatedProperties === false) return false;
  if (isMembers(additionalProperties) && Object.keys(additionalProperties).length > 0) return additionalProperties;
  return true;
}

/** The value by which an alternative is known: its first required property with one possible value. */
function tagOf(flat: Json): string | undefined {
  const { properties } = flat;
  if (!isMembers(properties)) return undefined;
  for (const name of requiredOf(flat)) {
    const schema = properties[name];
    if (!isMembers(schema)) continue;
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

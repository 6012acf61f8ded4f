import { type Combination, hasRestore, isGranted, narrowOutput, requiredBy } from './combination.ts';
import { type Area, type Name, type Part, type Person, type Row, type Subject, tenantOf, type World } from './world.ts';

// What a caller must get, computed from the raw rows. Nothing of the toolkit is used here.

/** The parts of a request, each as the level of its factor. */
export type Asked = Pick<Combination, 'ordering' | 'filter' | 'search' | 'deleted' | 'fields' | 'expand'>;
export const PLAIN: Asked = { ordering: 'none', filter: 'none', search: 'none', deleted: 'no', fields: 'none', expand: 'none' };

export interface Caller {
  /** Null: without credentials. */
  readonly name: Name | null;
  readonly user: Person | null;
}

type Item = Readonly<Record<string, unknown>>;

export class Oracle {
  readonly #combination: Combination;
  readonly #world: World;
  readonly #caller: Caller;

  constructor(combination: Combination, world: World, caller: Caller) {
    this.#combination = combination;
    this.#world = world;
    this.#caller = caller;
  }

  get #tenant(): string {
    return this.#caller.name === null ? 'north' : tenantOf(this.#caller.name);
  }

  get #isStaff(): boolean {
    return this.#caller.user?.is_staff === true;
  }

  /** 401 for callers without credentials where none are admitted. */
  get isAdmitted(): boolean {
    return this.#caller.user !== null || this.#combination.scope === 'anonymous' || isGranted(this.#combination);
  }

  /** `deleted`: of the rows that were deleted, instead of those that are there. */
  sees(row: Row, deleted: Asked['deleted'] = 'no'): boolean {
    const { tenant, scope } = this.#combination;
    const { user } = this.#caller;
    if (isDeleted(row) !== (deleted === 'only')) return false;
    if (tenant === 'yes' && row.org !== this.#tenant) return false;
    const isOwn = user !== null && row.owner_id === user.id;
    switch (scope) {
      case 'owner':
        return isOwn;
      case 'unless':
        return isOwn || this.#isStaff;
      case 'rows':
      case 'anonymous':
        return isOwn || this.#isStaff || row.status === 'open';
      case 'grants':
        return isOwn || this.#isGranted(row);
      case 'inherited':
        return isOwn || this.#isGranted(row) || this.#isGrantedArea(row);
      case 'exempt':
        return isOwn || this.#isStaff || this.#isGranted(row);
      case 'granted':
        return this.#isGranted(row);
      default:
        return true;
    }
  }

  /** The admin site shows its list to staff: rows of the tenant, whoever owns them; with grants, those that were given. */
  seesInAdmin(row: Row): boolean {
    const { tenant } = this.#combination;
    if (isDeleted(row) || (tenant === 'yes' && row.org !== this.#tenant)) return false;
    return !isGranted(this.#combination) || this.sees(row);
  }

  /** Grants of a deleted row are hidden with it. */
  #isGranted(row: Row): boolean {
    return !isDeleted(row) && this.#isSubject(this.#world.granted.get(row.id));
  }

  /** An area that is deleted, or of another tenant, gives nothing. */
  #isGrantedArea({ area_id }: Row): boolean {
    const area = this.#world.areas.find(({ id }) => id === area_id);
    return area !== undefined && this.seesArea(area) && this.#isSubject(this.#world.grantedAreas.get(area.id));
  }

  #isSubject(subjects: readonly Subject[] = []): boolean {
    const { name } = this.#caller;
    return subjects.some(
      (subject) =>
        subject === 'public' ||
        (name !== null && (subject === 'authenticated' || subject === name || (subject === 'team' && name === 'bob'))),
    );
  }

  areaOf(row: Row): Area | null {
    return this.#world.areas.find((area) => area.id === row.area_id && this.seesArea(area)) ?? null;
  }

  seesArea({ org, deleted_at }: Area): boolean {
    return (deleted_at ?? null) === null && (this.#combination.area !== 'tenant' || org === this.#tenant);
  }

  get seesMargin(): boolean {
    return this.#combination.margin === 'open' || this.#isStaff;
  }

  /** Whether the caller sees the column on some row: a caller without credentials owns none. */
  get seesNote(): boolean {
    return this.#combination.note === 'open' || this.#caller.user !== null;
  }

  get seesAreaCode(): boolean {
    return this.#combination.area !== 'ruled' || this.#isStaff;
  }

  /** True when the column may be named in `fields`. */
  #isNameable(column: string): boolean {
    const { code, margin, note } = this.#combination;
    if (!this.#isShown(column)) return false;
    // What is hidden as null is there: it has its name and no value.
    if (column === 'margin') return this.seesMargin || margin === 'null';
    if (column === 'note') return this.seesNote || note === 'null';
    return column !== 'code' || code === 'shown';
  }

  /** Computed fields that the caller sees, on some rows at least, where the controller shows them. */
  get computed(): readonly string[] {
    return this.#computedIn(this.#combination.output);
  }

  #computedIn(output: 'all' | 'narrow'): readonly string[] {
    return Object.entries(requiredBy(this.#combination))
      .filter(([, requires]) =>
        requires.every(
          (path) =>
            (path !== 'margin' || this.seesMargin) && (path !== 'note' || this.seesNote) && (path !== 'area.code' || this.seesAreaCode),
        ),
      )
      .map(([name]) => name)
      .filter((name) => this.#isShown(name, output));
  }

  /** Names that `fields` lists for this level; null when none is given. */
  fieldsOf({ fields }: Asked): readonly string[] | null {
    const computed = Object.keys(requiredBy(this.#combination));
    switch (fields) {
      case 'none':
        return null;
      case 'plain':
        return ['title', 'size'];
      case 'computed':
        return computed.length === 0 ? ['title'] : computed;
      case 'area':
        return ['title', 'area.name'];
      case 'missing':
        return ['title', 'nope'];
      default:
        return [fields];
    }
  }

  /** False when the request names something that the caller may not know: 422. */
  isKnown(asked: Asked): boolean {
    const isExpanded = asked.expand === 'area' || asked.expand === 'both';
    if (asked.deleted === 'only' && !(hasRestore(this.#combination) && this.#isStaff)) return false;
    if (asked.ordering === 'margin' && !this.seesMargin) return false;
    if (asked.filter === 'margin' && !this.seesMargin) return false;
    if (asked.filter === 'relatedCode' && !this.seesAreaCode) return false;
    const all = Object.keys(requiredBy(this.#combination));
    return (this.fieldsOf(asked) ?? []).every((name) =>
      name === 'area.name' ? isExpanded : name !== 'nope' && (all.includes(name) ? this.computed.includes(name) : this.#isNameable(name)),
    );
  }

  /** The rows of the list, in order. `parent`: only those below this area. */
  rows(asked: Asked, parent: string | null): Row[] {
    const found = this.#world.rows.filter(
      (row) =>
        this.sees(row, asked.deleted) &&
        (parent === null || row.area_id === parent) &&
        this.#passes(row, asked) &&
        this.#isFound(row, asked),
    );
    return found.toSorted((a, b) => this.#compare(a, b, asked));
  }

  #passes(row: Row, { filter }: Asked): boolean {
    switch (filter) {
      case 'own':
        return row.size !== null && row.size >= 3;
      case 'list':
        return row.status === 'open' || row.status === 'paid';
      case 'null':
        return row.size === null;
      case 'related':
        return this.areaOf(row)?.name.startsWith('Ac') === true;
      case 'relatedCode':
        return this.areaOf(row)?.code === 'X1';
      case 'custom':
        return this.#caller.user === null || row.owner_id === this.#caller.user.id;
      case 'margin':
        return row.margin !== null && Number(row.margin) >= 2;
      case 'two':
        return folded(row.title).includes('beta') && row.flag;
      default:
        return true;
    }
  }

  #isFound(row: Row, { search }: Asked): boolean {
    const words = { none: [], one: ['BETA'], two: ['a', 's1'] }[search];
    // Full text finds words that start so, whatever their case and accents; otherwise any part of a text is found.
    const found = [row.title, row.slug].flatMap(wordsOf);
    if (this.#combination.searchBy === 'fullText') return words.every((word) => found.some((each) => each.startsWith(word.toLowerCase())));
    return words.every((word) => [row.title, row.slug].some((text) => folded(text).includes(folded(word))));
  }

  #compare(a: Row, b: Row, { ordering }: Asked): number {
    const usual = this.#combination.usualOrdering;
    return this.compare(a, b, ordering !== 'none' ? ordering : usual !== 'none' ? usual : '-id');
  }

  compare(a: Row, b: Row, given: string): number {
    let isLastDescending = false;
    for (const term of given.split(',')) {
      isLastDescending = term.startsWith('-');
      const name = term.replace('-', '') as keyof Row;
      const order = compareValues(sortable(name, a[name]), sortable(name, b[name]), isLastDescending);
      if (order !== 0) return order;
    }
    // Rows with equal values follow their key, in the direction of the last column.
    return compareValues(a.id, b.id, isLastDescending);
  }

  /** A row as this caller sees it, as JSON. */
  item(row: Row, asked: Asked, output: 'all' | 'narrow' = this.#combination.output): Item {
    const { margin, note, version } = this.#combination;
    const wanted = this.fieldsOf(asked);
    const isOwn = this.#caller.user !== null && row.owner_id === this.#caller.user.id;
    const seesNote = note === 'open' || isOwn;
    const item: Record<string, unknown> = { ...row, ...(version === 'yes' ? { version: 1 } : {}) };
    if (!this.seesMargin) item['margin'] = margin === 'null' ? null : undefined;
    if (!seesNote) item['note'] = note === 'null' ? null : undefined;
    if (this.#combination.code === 'hidden') delete item['code'];
    for (const name of Object.keys(item)) {
      if (!this.#isShown(name, output) || (wanted !== null && name !== 'id' && !wanted.includes(name))) delete item[name];
    }
    for (const [name, requires] of Object.entries(requiredBy(this.#combination)))
      if (this.#computedIn(output).includes(name) && (!requires.includes('note') || seesNote) && (wanted === null || wanted.includes(name)))
        item[name] = this.#computedValue(row, requires);
    if (asked.expand === 'area' || asked.expand === 'both') {
      const area = this.#areaItem(row);
      item['area'] = area === null ? null : wanted?.includes('area.name') === true ? { name: area['name'] } : area;
    }
    if (asked.expand === 'parts' || asked.expand === 'both') {
      const { shown, hasMore } = this.#parts(row);
      item['parts'] = shown;
      if (hasMore) item['parts_more'] = true;
    }
    return asJson(item);
  }

  /** The value is the text of all that the field requires. */
  #computedValue(row: Row, requires: readonly string[]): string {
    const given: Record<string, unknown> = {};
    const area = this.areaOf(row);
    for (const path of requires) {
      const [first, second] = path.split('.') as [keyof Row, keyof Area | undefined];
      if (second === undefined) given[first] = row[first];
      else given['area'] = area === null ? null : { ...(given['area'] as object | undefined), [second]: area[second] };
    }
    return JSON.stringify(
      Object.keys(given)
        .toSorted()
        .map((name) => [name, given[name]]),
    );
  }

  #areaItem(row: Row): Item | null {
    const area = this.areaOf(row);
    if (area === null) return null;
    const { code, ...rest } = area;
    return asJson(this.seesAreaCode ? { ...rest, code } : rest);
  }

  #parts({ id }: Row): { readonly shown: readonly Item[]; readonly hasMore: boolean } {
    const isLimited = this.#combination.parts === 'limited';
    const live = this.#world.parts.filter(
      (part) => part.row_id === id && (part.deleted_at ?? null) === null && !(isLimited && part.cancelled),
    );
    const ordered = live.toSorted((a: Part, b: Part) => (isLimited && a.amount !== b.amount ? b.amount - a.amount : a.id < b.id ? -1 : 1));
    const limit = isLimited ? 2 : 20;
    return { shown: ordered.slice(0, limit).map((part) => asJson(part)), hasMore: ordered.length > limit };
  }

  /** Names of the columns that a file or `/meta` lists. */
  columns(asked: Asked): readonly string[] {
    const wanted = this.fieldsOf(asked);
    const sample = { ...(this.#world.rows[0] as Row), ...(this.#combination.version === 'yes' ? { version: 1 } : {}) };
    const own = Object.keys(sample).filter((name) => this.#isNameable(name) && (wanted === null || name === 'id' || wanted.includes(name)));
    const computed = this.computed.filter((name) => wanted === null || wanted.includes(name));
    const isExpanded = asked.expand === 'area' || asked.expand === 'both';
    const ofArea = Object.keys(this.#world.areas[0] as Area).filter((name) => name !== 'code' || this.seesAreaCode);
    const area = isExpanded ? (wanted?.includes('area.name') === true ? ['name'] : ofArea).map((name) => `area.${name}`) : [];
    return [...own, ...computed, ...area];
  }

  #isShown(name: string, output: 'all' | 'narrow' = this.#combination.output): boolean {
    return output === 'all' || narrowOutput(this.#combination).includes(name);
  }

  /** `GET /stats?group_by=status&metrics=n,total,top`. */
  stats(rows: readonly Row[]): readonly Item[] {
    const groups = [...new Set(rows.map(({ status }) => status))].toSorted();
    return groups.map((status) => {
      const members = rows.filter((row) => row.status === status);
      const prices = members.flatMap(({ price }) => (price === null ? [] : [Math.round(Number(price) * 100)]));
      const sizes = members.flatMap(({ size }) => (size === null ? [] : [size]));
      return {
        status,
        n: members.length,
        total: prices.length === 0 ? null : (prices.reduce((sum, cents) => sum + cents, 0) / 100).toFixed(2),
        top: sizes.length === 0 ? null : Math.max(...sizes),
      };
    });
  }
}

const isDeleted = ({ deleted_at: at = null }: Row): boolean => at !== null;

/** Words of letters and digits, without case and accents. */
const wordsOf = (text: string): string[] =>
  text
    .normalize('NFD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');

/** A to Z without case, as `contains` and search compare. */
const folded = (text: string): string => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());

type Sortable = string | number | null;
const sortable = (name: string, given: unknown): Sortable =>
  given === null || given === undefined
    ? null
    : name === 'price' || name === 'margin'
      ? Number(given)
      : given instanceof Date
        ? given.getTime()
        : (given as Sortable);

/** NULLs are last in both directions. */
function compareValues(a: Sortable, b: Sortable, isDescending: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (a === b) return 0;
  return a < b !== isDescending ? -1 : 1;
}

const asJson = (value: object): Item => JSON.parse(JSON.stringify(value)) as Item;

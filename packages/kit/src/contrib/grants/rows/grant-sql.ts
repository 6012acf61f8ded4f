import type { Dialect } from '../../../db/dialect.ts';
import type { Model } from '../../../db/declare/model.ts';
import { quoteName, quoteText } from '../../../db/declare/names.ts';
import { identityValue } from '../../../db/sql/identity-value.ts';
import { statementsOf } from '../../../db/sql/model-statements.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { subjectsOf } from '../caller/caller-subjects.ts';
import type { ObjectActions } from '../declare/object-actions.ts';

/** Makes the value of a placeholder for another asker of the same kind. */
type MakeValue = (asker: KnownAsker) => unknown;

/** Collects the values of a statement, and how each is made: a text that was written once is bound for every asker. */
export class Values {
  readonly list: unknown[] = [];
  readonly #makers: MakeValue[] = [];

  add(value: unknown, make: MakeValue = () => value): string {
    this.#makers.push(make);
    return `$${this.list.push(value)}`;
  }

  for(asker: KnownAsker): unknown[] {
    return this.#makers.map((make) => make(asker));
  }
}

/** An id, which users and tenants have as text, as a column stores it; undefined when the column cannot hold it. */
export function identityEncoder(model: Model, name: string): (id: string) => unknown {
  const column = statementsOf(model).column(name);
  return (id) => {
    const value = identityValue(column, id);
    return value === undefined ? undefined : column.encode(value);
  };
}

/** More groups travel as one list. */
const SINGLE_GROUPS_MAX = 16;

/** The pieces of SQL about grants, for one database and one asker. Names come from checked declarations; everything else is a value. */
export class GrantSql {
  readonly dialect: Dialect;
  readonly asker: KnownAsker;
  readonly values: Values;
  #now: string | undefined;
  /** By the wide subjects that a declaration allows: those of a parent are most often the same. */
  readonly #subjects = new Map<string, string>();
  #tenant: string | undefined;
  /** By the alias of the table. */
  readonly #rowTenants = new Map<string, string>();

  constructor(dialect: Dialect, asker: KnownAsker, values = new Values()) {
    this.dialect = dialect;
    this.asker = asker;
    this.values = values;
  }

  /** `expression` is one of a list of strings. */
  among(expression: string, textsOf: (asker: KnownAsker) => readonly unknown[], type = 'text'): string {
    const { asker, values } = this;
    const encoded: MakeValue = this.dialect === 'postgres' ? textsOf : (each) => JSON.stringify(textsOf(each));
    const placeholder = values.add(encoded(asker), encoded);
    return this.dialect === 'postgres'
      ? `${expression} = any(${placeholder}::${type}[])`
      : `${expression} in (select value from json_each(${placeholder}))`;
  }

  subject(declaration: ObjectActions): string {
    const wide = [...declaration.subjects].sort().join();
    let text = this.#subjects.get(wide);
    if (text === undefined) this.#subjects.set(wide, (text = this.#subjectIn(declaration)));
    return text;
  }

  /**
   * How many groups a text has room for: 0, 1, 2, 4, 8, 16. One text serves all askers with as many groups or fewer. -1: one list for all.
   * Reading a list as JSON takes SQLite as long as the lookup itself; on PostgreSQL an array costs nothing.
   */
  static placesOf(dialect: Dialect, { groups }: KnownAsker): number {
    if (dialect === 'postgres' || groups.length > SINGLE_GROUPS_MAX) return -1;
    return groups.length === 0 ? 0 : 2 ** Math.ceil(Math.log2(groups.length));
  }

  #subjectIn(declaration: ObjectActions): string {
    const { dialect, asker, values } = this;
    // Every place of the list asks for the same asker, one after the other.
    let known: { readonly asker: KnownAsker; readonly subjects: readonly string[] } | undefined;
    const of = (each: KnownAsker): readonly string[] => {
      if (known?.asker !== each) known = { asker: each, subjects: subjectsOf(declaration, each) };
      return known.subjects;
    };
    const places = GrantSql.placesOf(dialect, asker);
    if (places === -1) return this.among('g.subject', of);
    const count = Math.max(1, of(asker).length - asker.groups.length + places);
    const placeholders = Array.from({ length: count }, (_, index) => {
      // Places that are left over repeat the last subject; an anonymous caller has none.
      const make: MakeValue = (each) => of(each)[index] ?? of(each).at(-1) ?? '';
      return values.add(make(asker), make);
    });
    return `g.subject in (${placeholders.join(', ')})`;
  }

  /** A grant counts until the moment it expires, and not at it. */
  isLive(): string {
    this.#now ??= this.values.add(this.asker.now, ({ now }) => now);
    return `(g.expires_at is null or g.expires_at > ${this.#now})`;
  }

  /** The stored set contains the action, or the stored list names it. Nothing that is a pattern: `_` in a name is no wildcard. */
  gives(declaration: ObjectActions, action: string): string {
    const listed = `${this.dialect === 'postgres' ? 'strpos' : 'instr'}(g.actions, ${quoteText(`,${action},`)}) > 0`;
    const sets = declaration.setsWith(action);
    return sets.length === 0 ? listed : `(g.actions in (${sets.map(quoteText).join(', ')}) or ${listed})`;
  }

  /** The grants that count are those on objects of the asker's tenant. */
  inTenant(declaration: ObjectActions): string {
    if (declaration.tenant === undefined) return ` and g.tenant_key = ''`;
    this.#tenant ??= this.values.add(this.asker.tenant ?? '', ({ tenant }) => tenant ?? '');
    return ` and g.tenant_key = ${this.#tenant}`;
  }

  /** Grants of the asker on objects of a model, whatever the object. */
  grantsOf(declaration: ObjectActions, action: string): string {
    return (
      `g.object_type = ${quoteText(declaration.type)} and ${this.subject(declaration)}${this.inTenant(declaration)} and ${this.isLive()} ` +
      `and ${this.gives(declaration, action)}`
    );
  }

  /** A key of the model as `grants.object_id` has it. */
  keyText(declaration: ObjectActions, expression: string): string {
    const { kind } = declaration.key.definition;
    if (kind === 'text') return expression;
    if (this.dialect === 'postgres') return `${expression}::text`;
    return kind === 'uuid' ? expression : `cast(${expression} as text)`;
  }

  /** `grants.object_id` as the key of the model. */
  textKey(declaration: ObjectActions, expression: string): string {
    const { kind } = declaration.key.definition;
    if (kind === 'text') return expression;
    if (this.dialect === 'postgres') return `${expression}::${this.keyType(declaration)}`;
    return kind === 'uuid' ? expression : `cast(${expression} as integer)`;
  }

  keyType(declaration: ObjectActions): string {
    const { kind } = declaration.key.definition;
    return kind === 'uuid' ? 'uuid' : kind === 'int' ? 'integer' : kind === 'bigint' ? 'bigint' : 'text';
  }

  /** The row of a model belongs to the asker. Undefined when its rows have no owner, or the caller cannot be one. */
  isOwned(declaration: ObjectActions, alias: string): string | undefined {
    const { user } = this.asker;
    return declaration.owner === undefined || user === null || !user.is_active
      ? undefined
      : this.#isIdentity(declaration, declaration.owner, alias, (asker) => asker.user?.id ?? '');
  }

  /** The row is of the asker's tenant; empty where rows have no tenant column. */
  isRowOfTenant(declaration: ObjectActions, alias: string): string {
    const { tenant: column } = declaration;
    if (column === undefined) return '';
    if (this.asker.tenant === null) return ` and ${alias}.${quoteName(column)} is null`;
    let text = this.#rowTenants.get(alias);
    if (text === undefined) {
      text = ` and ${this.#isIdentity(declaration, column, alias, ({ tenant }) => tenant ?? '') ?? '1 = 0'}`;
      this.#rowTenants.set(alias, text);
    }
    return text;
  }

  /** An id that the column cannot hold has no rows. */
  #isIdentity({ model }: ObjectActions, name: string, alias: string, idOf: (asker: KnownAsker) => string): string | undefined {
    const encode = identityEncoder(model, name);
    const make: MakeValue = (asker) => encode(idOf(asker));
    const value = make(this.asker);
    return value === undefined ? undefined : `${alias}.${quoteName(name)} = ${this.values.add(value, make)}`;
  }

  isUndeleted(declaration: ObjectActions, alias: string): string {
    return declaration.deletedAt === undefined ? '' : ` and ${alias}.${quoteName(declaration.deletedAt)} is null`;
  }
}

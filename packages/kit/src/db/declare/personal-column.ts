import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, oneOf, rule } from '../../options/value-rule.ts';

export interface PersonalOptions<S = unknown> {
  /** What the value becomes when the person is erased and the row stays; a function gets the key of the row as text. Default: NULL. */
  readonly erased?: S | ((key: string) => S);
}

export interface PersonOptions<S = unknown> {
  /**
   * What erasing the person does to the row. `delete` removes it. `anonymise` replaces its personal columns and this one. `unlink` replaces this column alone, and the
   * row is not in the export: it is about something else. `keep` leaves the row as it is, in the export: its module erases it by rules of its own. Default: `delete`.
   */
  readonly erase?: Erasing;
  /** What this column becomes in a row that stays. Default: NULL. */
  readonly erased?: S;
  /** What the column contains for a user, where that is not the id alone: `(id) => \`user:${id}\``. */
  readonly value?: (id: string) => string;
}

export interface TenantOptions {
  /** `keep`: the module erases the row by rules of its own. Default: `delete`. */
  readonly erase?: 'delete' | 'keep';
}

/** What an erasure does to a row. */
export type Erasing = 'delete' | 'anonymise' | 'unlink' | 'keep';

/** What a declaration says about a personal column. */
export interface PersonalSettings {
  /** Makes the value for a row that stays. Absent: NULL. */
  readonly replace?: (key: string) => unknown;
}

/** What a declaration says about the person of a row. */
export interface PersonSettings extends PersonalSettings {
  /** What erasing the person does to the row. */
  readonly erase: Erasing;
  /** What the column contains for a user. Absent: the id. */
  readonly value?: (id: string) => string;
}

/** What a declaration says about whose the row is. */
export interface WhoseSettings {
  /** The value says something about the person of the row. */
  readonly personal?: PersonalSettings;
  /** Its value, or the row it refers to, says whose the row is. */
  readonly person?: PersonSettings;
  /** Its value, or the row it refers to, says of which tenant the row is. */
  readonly tenant?: Required<TenantOptions>;
}

const aValue = rule('a value of the column', () => true);
const personalRules: OptionRules<PersonalOptions> = { erased: aValue };
const personRules: OptionRules<PersonOptions> = { erase: oneOf('delete', 'anonymise', 'unlink', 'keep'), erased: aValue, value: aFunction };
const tenantRules: OptionRules<TenantOptions> = { erase: oneOf('delete', 'keep') };

export function personalSettings<S>(options: PersonalOptions<S>): PersonalSettings {
  return replacing(readOptions('personal()', options, personalRules as OptionRules<PersonalOptions<S>>));
}

export function personSettings<S>(options: PersonOptions<S>): PersonSettings {
  const { erase = 'delete', value } = readOptions('person()', options, personRules as OptionRules<PersonOptions<S>>);
  return { erase, ...replacing(options), ...(value === undefined ? {} : { value }) };
}

export function tenantSettings(options: TenantOptions): NonNullable<WhoseSettings['tenant']> {
  const { erase = 'delete' } = readOptions('tenant()', options, tenantRules);
  return { erase };
}

function replacing(options: { readonly erased?: unknown }): PersonalSettings {
  const { erased } = options;
  if (erased === undefined) return {};
  return { replace: typeof erased === 'function' ? (erased as (key: string) => unknown) : () => erased };
}

/** Columns that show whether a row is anonymised: those whose replacement is the same in every row. */
export function tellingColumns({
  columns,
}: {
  readonly columns: Readonly<
    Record<string, { readonly settings: WhoseSettings & { readonly nullable: boolean; readonly encrypted?: unknown } }>
  >;
}): string[] {
  return Object.entries(columns).flatMap(([name, { settings }]) => {
    const { personal, person, nullable, encrypted } = settings;
    if (personal === undefined && person?.erase !== 'anonymise') return [];
    const replace = (personal ?? person)?.replace;
    return replace === undefined ? (nullable ? [name] : []) : replace.length === 0 && encrypted === undefined ? [name] : [];
  });
}

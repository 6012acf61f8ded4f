import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { wholeNumber } from '../../options/value-rule.ts';

export interface PersonalDataOptions {
  /** Days between the request of a person to be erased and the erasure, in which they can take it back. Default: 30. */
  readonly graceDays?: number;
  /** Days in which an export can be downloaded. Default: 7. */
  readonly exportDays?: number;
}

export type PersonalDataSettings = Required<PersonalDataOptions>;

const rules: OptionRules<PersonalDataOptions> = { graceDays: wholeNumber(0, 365), exportDays: wholeNumber(1, 365) };

export function readPersonalDataOptions(options: PersonalDataOptions): PersonalDataSettings {
  const { graceDays = 30, exportDays = 7 } = readOptions('personalData()', options, rules);
  return Object.freeze({ graceDays, exportDays });
}

import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { rule, wholeNumber } from '../../options/value-rule.ts';

export interface RequestsOptions {
  /**
   * The share of successful requests that get a row, from 0 to 1. Default: 1. Failures always get one, and every request is counted in the usage.
   */
  readonly sampleRatio?: number;
  /** Days after which rows are removed, in the background. Default: 30. */
  readonly retentionDays?: number;
  /** Days after which the counts by day are removed. Default: 400. */
  readonly usageRetentionDays?: number;
  /** Rows that wait to be written, per process; further ones are dropped and counted. Default: 10,000. */
  readonly queueMax?: number;
}

export type RequestsSettings = Required<RequestsOptions>;

const rules: OptionRules<RequestsOptions> = {
  sampleRatio: rule('a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1),
  retentionDays: wholeNumber(1),
  usageRetentionDays: wholeNumber(1),
  queueMax: wholeNumber(1, 1_000_000),
};

export function readRequestsOptions(options: RequestsOptions): RequestsSettings {
  const { sampleRatio = 1, retentionDays = 30, usageRetentionDays = 400, queueMax = 10_000 } = readOptions('requests()', options, rules);
  return Object.freeze({ sampleRatio, retentionDays, usageRetentionDays, queueMax });
}

import type { Keyring } from '../verify/keyring.ts';
import { coreErrors } from '../../../errors/core-errors.ts';

/** A quota that nobody counts would limit nothing, and its key would look as if it had one. */
export function requireCountedQuota({ registry }: Pick<Keyring, 'registry'>, quota: string | null | undefined): void {
  if (quota === undefined || quota === null || registry.quotas !== null) return;
  const message = 'Nothing counts requests: add requests() of kit/contrib/requests to the modules of createApp.';
  throw coreErrors.validation_error({ errors: [{ location: ['body', 'quota'], code: 'not_counted', message }] });
}

import { requireArguments } from '../options/read-options.ts';
import { filledText } from '../options/value-rule.ts';
import { fromBase32, stepAt, totpCode } from '../auth/request/totp.ts';

/** What an authenticator app shows for the secret of a second factor, in tests that log in as staff: `oneTimeCode(secret, clock.now())`. */
export function oneTimeCode(secret: string, at: Date = new Date()): string {
  requireArguments('oneTimeCode()', { secret }, { secret: filledText });
  return totpCode(fromBase32(secret), stepAt(at));
}

import { clientKey } from '../../../throttle/client-key.ts';
import { clientThrottle, userThrottle } from '../../../throttle/throttles.ts';
import { enforceThrottles, throttledError } from '../../../throttle/enforce.ts';
import { parseRate } from '../../../throttle/rate.ts';
import type { Throttle, ThrottleRates } from '../../../throttle/throttle.ts';
import type { ThrottleStorage } from '../../../throttle/storage.ts';
import { normalizeLogin } from '../users/login-name.ts';

/** Guesses from one place, over all accounts. THROTTLE_RATES may set `login_client`. */
const CLIENT_RATE = parseRate('20/min');
/**
 * Guesses at one account by one of its names, from all places. 480 a day, against a password of ten characters.
 * THROTTLE_RATES may set `login_account`.
 */
const ACCOUNT_RATE = parseRate('10/30min');
const LINK_CLIENT_RATE = parseRate('20/min');
const LINK_ACCOUNT_RATE = parseRate('5/h');

/** Runs before anything is read; part of the login route. */
export const loginClientThrottle: Throttle = {
  name: 'login_client',
  phase: 'client',
  key: ({ clientAddress }) => clientKey(clientAddress),
  rate: ({ rates }) => rates['login_client'] ?? CLIENT_RATE,
};

/** Logging out is open to everyone, so that a dead cookie can be cleared; this bounds what that costs. */
export const logoutClientThrottle: Throttle = clientThrottle('60/min', { name: 'logout_client' });

/** Asking for links and using them. THROTTLE_RATES may set `link_client`. */
export const linkClientThrottle: Throttle = {
  name: 'link_client',
  phase: 'client',
  key: ({ clientAddress }) => clientKey(clientAddress),
  rate: ({ rates }) => rates['link_client'] ?? LINK_CLIENT_RATE,
};

/** Mails that one user can have sent to addresses of others. */
export const emailChangeThrottle: Throttle = userThrottle('20/h', { name: 'email_change' });

/**
 * Mails to one person, from all places: nobody can fill another's mailbox. By what was typed, without asking the database: a known name costs
 * what an unknown one does. THROTTLE_RATES may set `link_account`.
 */
export async function takeResetAttempt(
  login: string,
  { throttleStorage, throttleRates: rates }: { readonly throttleStorage: ThrottleStorage; readonly throttleRates: ThrottleRates },
  now: Date,
): Promise<void> {
  const account: Throttle = {
    name: 'link_account',
    phase: 'principal',
    key: () => normalizeLogin(login),
    rate: () => rates['link_account'] ?? LINK_ACCOUNT_RATE,
  };
  const outcome = await enforceThrottles(
    [account],
    'principal',
    { clientAddress: '', principal: null, tenant: null, rates },
    throttleStorage,
    now,
  );
  if (outcome.refused !== null) throw throttledError(outcome.refused);
}

/**
 * Takes one guess from an account's budget and returns the function that gives it back once the password was right. The budget is that of the name as
 * it was typed, known or not: one that user name and e-mail address shared would tell which address belongs to a name whose budget is used up. The
 * account is known only from the body, so the route cannot do this.
 */
export async function takeLoginAttempt(
  login: string,
  storage: ThrottleStorage,
  rates: ThrottleRates,
  now: Date,
): Promise<() => Promise<void>> {
  const account: Throttle = {
    name: 'login_account',
    phase: 'principal',
    key: () => normalizeLogin(login),
    rate: () => rates['login_account'] ?? ACCOUNT_RATE,
  };
  const outcome = await enforceThrottles([account], 'principal', { clientAddress: '', principal: null, tenant: null, rates }, storage, now);
  if (outcome.refused !== null) throw throttledError(outcome.refused);
  return () => outcome.giveBack();
}

import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Mountable } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { implementationOf } from '../../options/read-options.ts';
import { aFunction, filledText, listOf, objectWith, required, rule } from '../../options/value-rule.ts';
import type { Throttle } from '../../throttle/throttle.ts';

/** What a login provider sees of a request. */
export type LoginContext = Pick<HandlerContext, 'request' | 'reply' | 'db' | 'clock' | 'client' | 'principal'>;

/**
 * How people log in with a browser, for sites of the application such as the admin site. `accounts()` provides one; an application with its
 * own users gives `createApp({ login })`. A second factor that is missing is a fact of the principal: `secondFactor: 'missing'`.
 */
export interface LoginProvider {
  /** Names of the authenticators of its sessions. Sites accept no other credential. Each has `verifyCsrf`. */
  readonly authenticators: readonly string[];
  /** The page where people log in: a path, or an http(s) URL. Sites link to it and add `return_to`. Not needed with `form`. */
  readonly loginUrl?: string;
  /** The page where people set up their second factor and change their password. */
  readonly accountUrl?: string;
  /** What unsafe requests send back as `x-csrf-token`; null where `verifyCsrf` looks at something else, such as `Origin`. */
  csrfToken?(context: LoginContext): string | null | Promise<string | null>;
  /** Whether the session was opened with a second factor. Default: the principal says `secondFactor: 'proved'`. */
  hasSecondFactor?(context: LoginContext): boolean | Promise<boolean>;
  /** Ends the session of the request and clears its cookie. Called without a principal, too, for the cookie of a session that has ended. */
  logOut(context: LoginContext): void | Promise<void>;
  /** For sites that show the login form themselves. */
  readonly form?: LoginForm;
}

export interface LoginForm {
  /** Limits for attempts to log in. */
  readonly throttles?: readonly Throttle[];
  /**
   * Checks the password, and the code where the user has a second factor; opens a session and sets its cookie. `admit` is called once the
   * password was right and before the session is stored: what it throws refuses the login.
   */
  logIn(
    context: LoginContext,
    given: { readonly login: string; readonly password: string; readonly code?: string | undefined },
    admit: (tx: Db, user: User) => Promise<void>,
  ): Promise<OpenedSession>;
  /** Routes for the user's own account, which the pages of the admin site call. Without it sites link to `accountUrl`. */
  account?(facts: { readonly hidden: true; readonly metadata: Readonly<Record<string, unknown>> }): Mountable;
}

export interface OpenedSession {
  readonly user: User;
  readonly csrfToken: string | null;
  /** `missing`: the user's staff rights are withheld until a second factor is set up. */
  readonly secondFactor?: 'proved' | 'missing' | undefined;
}

/** Never `javascript:`, and never `//host`, which is another host. */
export const pageAddress = rule(
  'a path such as "/login", or an http(s) URL',
  (value) =>
    typeof value === 'string' && (/^\/(?![/\\])/.test(value) || /^https?:\/\/[^/\\]/.test(value)) && URL.canParse(value, 'http://a'),
);

export const loginProvider = implementationOf<LoginProvider>('a login provider: { authenticators, loginUrl, logOut }', {
  authenticators: required(listOf(filledText, { min: 1 })),
  loginUrl: pageAddress,
  accountUrl: pageAddress,
  csrfToken: aFunction,
  hasSecondFactor: aFunction,
  logOut: required(aFunction),
  form: objectWith('{ logIn }', 'logIn'),
});

/** What types cannot say about a provider. */
export function loginFaults({ authenticators, loginUrl, form }: LoginProvider, known: readonly Authenticator[]): Fault[] {
  const faults = authenticators.flatMap((name): Fault[] => {
    const found = known.find((each) => each.name === name);
    if (found === undefined)
      return [
        fault(
          `"${name}" is not an authenticator of the app.`,
          didYouMean(
            name,
            known.map((each) => each.name),
          ).trim() || 'Add it to `authenticators`.',
        ),
      ];
    // A browser sends the credential with requests of other sites, too.
    if (found.verifyCsrf === undefined)
      return [fault(`the authenticator "${name}" has no verifyCsrf.`, 'Add it: it throws csrf_failed for requests from other sites.')];
    return [];
  });
  if (loginUrl === undefined && form === undefined)
    faults.push(fault('it has neither loginUrl nor form.', 'Set loginUrl to the page where people log in.'));
  return faults;
}

const fault = (message: string, hint: string): Fault => ({ id: 'E034', message: `The login provider cannot be used: ${message}`, hint });

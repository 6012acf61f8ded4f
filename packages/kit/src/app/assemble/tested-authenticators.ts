import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { AppOptions } from '../declare/options.ts';

/**
 * Replaces the authenticators of an app by those of its test: `testApp(…).as(user)`. A symbol that no package exports, so that no option, file
 * or variable can name it.
 */
export const testedAuthenticators: unique symbol = Symbol('kit.testedAuthenticators');

export interface TestedOptions extends AppOptions {
  readonly [testedAuthenticators]?: (declared: readonly Authenticator[]) => readonly Authenticator[];
}

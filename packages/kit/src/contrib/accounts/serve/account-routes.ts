import { type AccountRoutes, mountOf } from '../../../app/declare/account-routes.ts';
import type { AccountsSettings } from '../options.ts';
import { AccountController } from './controller.ts';

/** For pages: the routes of AccountController, where the app has mounted it. People without an account get one by an invitation. */
export function accountRoutes({ mail }: AccountsSettings): AccountRoutes {
  return {
    kind: 'accounts',
    needs: 'AccountController',
    base: (app) => mountOf(app, (controller) => controller instanceof AccountController, 'login', '/login'),
    signUp: false,
    reset: mail !== null,
    secondFactor: true,
  };
}

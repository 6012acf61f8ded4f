import type { LoginForm } from '../../../app/declare/login-provider.ts';
import { AccountController } from './controller.ts';

type SiteFacts = Parameters<NonNullable<LoginForm['account']>>[0];

/** The user's own account for a site such as the admin site: the routes of AccountController, for an application that does not mount it. */
export function siteAccountController(facts: SiteFacts): AccountController {
  class KitSiteAccountController extends AccountController {
    constructor() {
      super();
      // The site has its own login, for staff only; users are invited through its users list.
      for (const field of ['login', 'logout', 'me', 'invite']) Reflect.deleteProperty(this, field);
    }

    override password = this.wrap('password', facts) as never;
    override email = this.wrap('email', facts) as never;
    override confirmEmail = this.wrap('confirmEmail', facts) as never;
    override presence = this.wrap('presence', facts) as never;
    override sessions = this.wrap('sessions', facts) as never;
    override endSession = this.wrap('endSession', facts) as never;
    override endOtherSessions = this.wrap('endOtherSessions', facts) as never;
    override factor = this.wrap('factor', facts) as never;
    override beginFactor = this.wrap('beginFactor', facts) as never;
    override confirmFactor = this.wrap('confirmFactor', facts) as never;
    override renewRecoveryCodes = this.wrap('renewRecoveryCodes', facts) as never;
    override removeFactor = this.wrap('removeFactor', facts) as never;
    override reset = this.wrap('reset', facts) as never;
    override confirmReset = this.wrap('confirmReset', facts) as never;
    override acceptInvitation = this.wrap('acceptInvitation', facts) as never;
  }
  // The name is part of the operation ids, and an app may have several sites.
  const site = 'portal' in facts.metadata ? 'KitPortal' : 'KitAdmin';
  Object.defineProperty(KitSiteAccountController, 'name', { value: `${site}AccountController` });
  return new KitSiteAccountController();
}

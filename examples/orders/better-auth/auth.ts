import { randomBytes } from 'node:crypto';
import { betterAuth } from 'better-auth';
import { admin, organization, twoFactor } from 'better-auth/plugins';
import { joinedKysely, kitPlugin } from 'kit/contrib/better-auth';
import type { Database } from 'kit/db';

/** What the login asks the application to send. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  /** A link; for an invitation its id. */
  readonly link: string;
}

export interface AuthSettings {
  readonly baseURL: string;
  readonly send: (mail: Mail) => void;
  /** Signs the cookies. A new one at every start ends the sessions of the last run. */
  readonly secret?: string;
}

/** The team's own better-auth instance: sign-up, second factors and organizations are its business. */
export function createAuth(database: Database, { baseURL, send, secret = randomBytes(32).toString('base64url') }: AuthSettings) {
  return betterAuth({
    baseURL,
    basePath: '/auth',
    secret,
    // Its warnings are about callers, such as an unknown address, and would stand between the lines of the panel.
    logger: { level: 'error' },
    database: { db: joinedKysely(database), type: database.dialect, transaction: true },
    emailAndPassword: {
      enabled: true,
      requireEmailVerification: true,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: async ({ user, url }) => send({ to: user.email, subject: 'New password', link: url }),
    },
    emailVerification: {
      sendOnSignUp: true,
      sendVerificationEmail: async ({ user, url }) => send({ to: user.email, subject: 'Verify your address', link: url }),
    },
    verification: { storeIdentifier: 'hashed' },
    advanced: { database: { validateSchema: false }, disableOriginCheck: false },
    telemetry: { enabled: false },
    plugins: [
      organization({
        sendInvitationEmail: async ({ email, id, organization: { name } }) =>
          send({ to: email, subject: `Invitation to ${name}`, link: id }),
      }),
      twoFactor(),
      admin(),
      kitPlugin(),
    ],
  });
}

export type Auth = ReturnType<typeof createAuth>;

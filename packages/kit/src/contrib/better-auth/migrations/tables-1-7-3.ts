// The tables of better-auth 1.7.3 to 1.7.7 with its plugins organization (teams, dynamic roles), twoFactor, admin, jwt, username, phoneNumber
// and anonymous, with @better-auth/passkey and @better-auth/sso, and rate limits in the database. Columns of plugins that are not in use stay null.
// Tables that are there already stay as they are: see adopt-tables.ts. A test compares them with what the installed package would create. SCIM: tables-scim-1-7.ts.
// A generation with other tables gets a file and a migration of its own.

interface ColumnTypes {
  readonly bool: string;
  readonly at: string;
  /** With a default, where better-auth has one. */
  readonly now: string;
}

const KEY = '"id" text not null primary key';
const USER = '"userId" text not null references "user" ("id") on delete cascade';
const ORGANIZATION = '"organizationId" text not null references "organization" ("id") on delete cascade';

function tables({ bool, at, now }: ColumnTypes): readonly string[] {
  return [
    `create table if not exists "user" (${KEY}, "name" text not null, "email" text not null unique, "emailVerified" ${bool} not null, "image" text,
      "createdAt" ${now} not null, "updatedAt" ${now} not null, "twoFactorEnabled" ${bool}, "role" text, "banned" ${bool}, "banReason" text,
      "banExpires" ${at}, "username" text unique, "displayUsername" text, "phoneNumber" text unique, "phoneNumberVerified" ${bool},
      "isAnonymous" ${bool})`,
    `create table if not exists "session" (${KEY}, "expiresAt" ${at} not null, "token" text not null unique, "createdAt" ${now} not null,
      "updatedAt" ${at} not null, "ipAddress" text, "userAgent" text, ${USER}, "activeOrganizationId" text, "activeTeamId" text,
      "impersonatedBy" text)`,
    `create table if not exists "account" (${KEY}, "accountId" text not null, "providerId" text not null, ${USER}, "accessToken" text, "refreshToken" text,
      "idToken" text, "accessTokenExpiresAt" ${at}, "refreshTokenExpiresAt" ${at}, "scope" text, "password" text,
      "createdAt" ${now} not null, "updatedAt" ${at} not null)`,
    `create table if not exists "verification" (${KEY}, "identifier" text not null, "value" text not null, "expiresAt" ${at} not null,
      "createdAt" ${now} not null, "updatedAt" ${now} not null)`,
    `create table if not exists "organization" (${KEY}, "name" text not null, "slug" text not null unique, "logo" text, "createdAt" ${at} not null,
      "metadata" text)`,
    `create table if not exists "organizationRole" (${KEY}, ${ORGANIZATION}, "role" text not null, "permission" text not null,
      "createdAt" ${now} not null, "updatedAt" ${at})`,
    `create table if not exists "team" (${KEY}, "name" text not null, "memberCount" integer not null, ${ORGANIZATION}, "createdAt" ${at} not null,
      "updatedAt" ${at})`,
    `create table if not exists "teamMember" (${KEY}, "teamId" text not null references "team" ("id") on delete cascade, ${USER},
      "membershipKey" text unique, "createdAt" ${at})`,
    `create table if not exists "member" (${KEY}, ${ORGANIZATION}, ${USER}, "role" text not null, "createdAt" ${at} not null)`,
    `create table if not exists "invitation" (${KEY}, ${ORGANIZATION}, "email" text not null, "role" text, "teamId" text, "status" text not null,
      "expiresAt" ${at} not null, "createdAt" ${now} not null, "inviterId" text not null references "user" ("id") on delete cascade)`,
    `create table if not exists "twoFactor" (${KEY}, "secret" text not null, "backupCodes" text not null, ${USER}, "verified" ${bool},
      "failedVerificationCount" integer, "lockedUntil" ${at})`,
    `create table if not exists "jwks" (${KEY}, "publicKey" text not null, "privateKey" text not null, "createdAt" ${at} not null, "expiresAt" ${at},
      "alg" text, "crv" text)`,
    `create table if not exists "passkey" (${KEY}, "name" text, "publicKey" text not null, ${USER}, "credentialID" text not null, "counter" integer not null,
      "deviceType" text not null, "backedUp" ${bool} not null, "transports" text, "createdAt" ${at}, "aaguid" text)`,
    `create table if not exists "ssoProvider" (${KEY}, "issuer" text not null, "oidcConfig" text, "samlConfig" text, ${USER},
      "providerId" text not null unique, "organizationId" text, "domain" text not null)`,
    `create table if not exists "rateLimit" (${KEY}, "key" text not null unique, "count" integer not null, "lastRequest" bigint not null)`,
    ...INDEXES.map(([table, column]) => `create index if not exists "${table}_${column}_idx" on "${table}" ("${column}")`),
    // better-auth looks before it inserts; two requests together would make one user a member twice.
    `create unique index if not exists "member_organizationId_userId_uidx" on "member" ("organizationId", "userId")`,
  ];
}

const INDEXES: readonly (readonly [table: string, column: string])[] = [
  ['session', 'userId'],
  ['account', 'userId'],
  ['verification', 'identifier'],
  ['organizationRole', 'organizationId'],
  ['organizationRole', 'role'],
  ['team', 'organizationId'],
  ['teamMember', 'teamId'],
  ['teamMember', 'userId'],
  ['member', 'organizationId'],
  ['member', 'userId'],
  ['invitation', 'organizationId'],
  ['invitation', 'email'],
  ['twoFactor', 'secret'],
  ['twoFactor', 'userId'],
  ['passkey', 'userId'],
  ['passkey', 'credentialID'],
];

export const betterAuthTables = {
  sqlite: tables({ bool: 'integer', at: 'date', now: 'date' }),
  postgres: tables({ bool: 'boolean', at: 'timestamptz', now: 'timestamptz default current_timestamp' }),
};

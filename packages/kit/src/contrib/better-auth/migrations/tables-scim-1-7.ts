// The tables of @better-auth/scim 1.7.3 to 1.7.5, with managed connections. They are empty without the plugin; the view of users reads them always.
// A test compares them with what the installed package would create.

interface ColumnTypes {
  readonly bool: string;
  readonly at: string;
}

const KEY = '"id" text not null primary key';
const CONNECTION = '"connectionId" text not null, "provisioningDomainId" text not null';
const USER = '"userId" text not null references "user" ("id") on delete cascade';
const SCIM_USER = '"scimUserId" text not null references "scimUser" ("id") on delete cascade';
const MANAGED = '"connectionRecordId" text not null references "scimManagedConnection" ("id") on delete cascade';

function tables({ bool, at }: ColumnTypes): readonly string[] {
  const stamps = `"createdAt" ${at} not null, "updatedAt" ${at} not null`;
  return [
    `create table if not exists "scimManagedConnection" (${KEY}, "creationRequestId" text not null unique, "connectionId" text not null unique,
      "provisioningDomainId" text not null, "status" text not null, "revision" integer not null, "createdAt" ${at} not null,
      "createdBy" text not null, "decommissionStartedAt" ${at}, "decommissionStartedBy" text, "decommissionedAt" ${at}, "decommissionedBy" text)`,
    `create table if not exists "scimManagedCredential" (${KEY}, ${MANAGED}, "credentialId" text not null unique, "tokenDigest" text not null,
      "hashVersion" text not null, "activeSlotKey" text not null unique, "status" text not null, "serializedScopes" text not null,
      "expiresAt" ${at} not null, "createdAt" ${at} not null, "createdBy" text not null, "lastUsedAt" ${at}, "revokedAt" ${at}, "revokedBy" text,
      "decommissionedAt" ${at})`,
    `create table if not exists "scimManagedConnectionEvent" (${KEY}, ${MANAGED}, "eventKey" text not null unique, "sequence" integer not null,
      "type" text not null, "actorId" text not null, "credentialId" text, "createdAt" ${at} not null)`,
    `create table if not exists "scimConnectionBinding" (${KEY}, "connectionId" text not null, "connectionKey" text not null unique,
      "provisioningDomainId" text not null, "createdAt" ${at} not null, "decommissionedAt" ${at}, "decommissionStatus" text not null,
      "decommissionCursorUserId" text, "decommissionReconciledUserCount" integer not null, "decommissionBatchCount" integer not null,
      "decommissionRevision" integer not null, "decommissionCompletedAt" ${at}, "decommissionLeaseId" text, "decommissionLeaseExpiresAt" ${at})`,
    `create table if not exists "scimIdentityTombstone" (${KEY}, ${CONNECTION}, "externalId" text not null, "externalIdKey" text not null unique,
      ${USER}, "profile" text not null, "deletedAt" ${at} not null)`,
    `create table if not exists "scimSubject" (${KEY}, "userId" text not null unique references "user" ("id") on delete cascade,
      "profileSourceId" text, "revision" integer not null, ${stamps})`,
    `create table if not exists "scimUser" (${KEY}, ${CONNECTION}, ${USER}, "connectionUserKey" text not null unique, "userName" text not null,
      "userNameKey" text not null unique, "primaryEmail" text not null, "workEmailValueIndex" text not null, "emailValueIndex" text not null,
      "displayName" text not null, "formattedName" text not null, "givenName" text, "familyName" text, "serializedEmails" text not null,
      "serializedAttributes" text, "externalId" text, "externalIdKey" text unique, "active" ${bool} not null, "orderKey" text not null unique,
      ${stamps})`,
    `create table if not exists "scimProjectionGrant" (${KEY}, ${CONNECTION}, ${SCIM_USER}, ${USER}, "sourceKind" text not null,
      "sourceId" text not null, "sourceValue" text, "role" text not null, "grantKey" text not null unique, ${stamps})`,
    `create table if not exists "scimGroup" (${KEY}, ${CONNECTION}, "revision" integer not null, "displayName" text not null,
      "displayNameKey" text not null unique, "externalId" text, "externalIdKey" text unique, "orderKey" text not null unique, ${stamps})`,
    `create table if not exists "scimGroupMember" (${KEY}, "connectionId" text not null,
      "groupId" text not null references "scimGroup" ("id") on delete cascade, ${SCIM_USER}, "membershipKey" text not null unique,
      "createdAt" ${at} not null)`,
    ...INDEXES.map(([table, column]) => `create index if not exists "${table}_${column}_idx" on "${table}" ("${column}")`),
  ];
}

const INDEXES: readonly (readonly [table: string, column: string])[] = [
  ['scimManagedConnection', 'provisioningDomainId'],
  ['scimManagedCredential', 'connectionRecordId'],
  ['scimManagedConnectionEvent', 'connectionRecordId'],
  ['scimConnectionBinding', 'connectionId'],
  ['scimIdentityTombstone', 'connectionId'],
  ['scimIdentityTombstone', 'provisioningDomainId'],
  ['scimIdentityTombstone', 'userId'],
  ['scimSubject', 'profileSourceId'],
  ['scimUser', 'connectionId'],
  ['scimUser', 'provisioningDomainId'],
  ['scimUser', 'userId'],
  ['scimProjectionGrant', 'connectionId'],
  ['scimProjectionGrant', 'provisioningDomainId'],
  ['scimProjectionGrant', 'scimUserId'],
  ['scimProjectionGrant', 'userId'],
  ['scimGroup', 'connectionId'],
  ['scimGroup', 'provisioningDomainId'],
  ['scimGroupMember', 'connectionId'],
  ['scimGroupMember', 'groupId'],
  ['scimGroupMember', 'scimUserId'],
];

export const scimTables = {
  sqlite: tables({ bool: 'integer', at: 'date' }),
  postgres: tables({ bool: 'boolean', at: 'timestamptz' }),
};

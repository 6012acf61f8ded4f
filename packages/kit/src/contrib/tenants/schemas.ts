import { jsonSchema } from '../../http/declare/json-schema.ts';
import { SLUG_LENGTH_MAX } from './declare/slug.ts';
import { NAME_LENGTH_MAX, SUSPENDED_REASON_MAX } from './models.ts';

const name = { type: 'string', minLength: 1, maxLength: NAME_LENGTH_MAX };
const slug = {
  type: 'string',
  minLength: 1,
  maxLength: SLUG_LENGTH_MAX,
  description: 'Names the tenant in requests: lowercase letters, digits and single hyphens. Default: made of the name.',
};
const roles = { type: 'array', items: { type: 'string', maxLength: 40 }, minItems: 1, maxItems: 50, description: 'Roles in the tenant.' };
const email = { type: 'string', minLength: 3, maxLength: 254, format: 'email' };

export const NewTenantBody = jsonSchema<{ readonly name: string; readonly slug?: string }>(
  { type: 'object', properties: { name, slug }, required: ['name'], additionalProperties: false },
  { name: 'NewTenant' },
);

export const TenantPatch = jsonSchema<{ readonly name?: string; readonly slug?: string }>(
  { type: 'object', properties: { name, slug }, additionalProperties: false },
  { name: 'TenantPatch' },
);

export const TransferBody = jsonSchema<{ readonly user_id: string }>(
  {
    type: 'object',
    properties: { user_id: { type: 'string', minLength: 1, maxLength: 255, description: 'The member who becomes an owner.' } },
    required: ['user_id'],
    additionalProperties: false,
  },
  { name: 'TenantTransfer' },
);

export const SuspensionBody = jsonSchema<{ readonly reason?: string }>({
  type: 'object',
  properties: { reason: { type: 'string', maxLength: SUSPENDED_REASON_MAX, description: 'Shown to the members of the tenant.' } },
  additionalProperties: false,
});

/** Members are added by programs and staff; other people are invited. */
export const NewMemberBody = jsonSchema<{ readonly user_id: string; readonly roles: readonly string[] }>(
  {
    type: 'object',
    properties: { user_id: { type: 'string', minLength: 1, maxLength: 255 }, roles },
    required: ['user_id', 'roles'],
    additionalProperties: false,
  },
  { name: 'NewTenantMember' },
);

export const MemberPatch = jsonSchema<{ readonly roles?: readonly string[] }>(
  { type: 'object', properties: { roles }, additionalProperties: false },
  { name: 'TenantMemberPatch' },
);

export const NewInvitationBody = jsonSchema<{ readonly email: string; readonly roles: readonly string[] }>(
  { type: 'object', properties: { email, roles }, required: ['email', 'roles'], additionalProperties: false },
  { name: 'NewTenantInvitation' },
);

/** Nothing of an invitation changes but by sending it again. */
export const NoChanges = jsonSchema<object>({ type: 'object', properties: {}, additionalProperties: false });

export const AcceptBody = jsonSchema<{ readonly token: string; readonly username?: string; readonly password?: string }>(
  {
    type: 'object',
    properties: {
      token: { type: 'string', minLength: 1, maxLength: 100, 'x-sensitive': true, description: 'The token of the link in the mail.' },
      username: { type: 'string', minLength: 1, maxLength: 150, description: 'Of a new account, for people who have none.' },
      password: { type: 'string', minLength: 1, maxLength: 1024, format: 'password', 'x-sensitive': true },
    },
    required: ['token'],
    additionalProperties: false,
  },
  { name: 'AcceptedTenantInvitation' },
);

export const JoinedTenant = jsonSchema<{
  readonly tenant: { readonly id: string; readonly slug: string; readonly name: string };
  readonly user_id: string;
  readonly roles: readonly string[];
}>(
  {
    type: 'object',
    properties: {
      tenant: {
        type: 'object',
        properties: { id: { type: 'string', format: 'uuid' }, slug: { type: 'string' }, name: { type: 'string' } },
        required: ['id', 'slug', 'name'],
        additionalProperties: false,
      },
      user_id: { type: 'string' },
      roles: { type: 'array', items: { type: 'string' } },
    },
    required: ['tenant', 'user_id', 'roles'],
    additionalProperties: false,
  },
  { name: 'JoinedTenant' },
);

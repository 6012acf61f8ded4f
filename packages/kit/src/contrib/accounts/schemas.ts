import type { User } from '../../auth/people/principal.ts';
import { idParams, jsonSchema, namedSchema } from '../../http/declare/json-schema.ts';
import { accountErrors } from './errors.ts';
import type { SecondFactorState } from './login/password-login.ts';
import { PASSWORD_LENGTH_MAX } from './users/password-policy.ts';

const password = { type: 'string', minLength: 1, maxLength: PASSWORD_LENGTH_MAX, format: 'password', 'x-sensitive': true };

const code = {
  type: 'string',
  minLength: 1,
  maxLength: 40,
  'x-sensitive': true,
  description: 'Six digits of the authenticator app, or a recovery code.',
};
const login = { type: 'string', minLength: 1, maxLength: 254, description: 'User name or e-mail address.' };

export const LoginBody = jsonSchema<{ login: string; password: string; code?: string }>(
  {
    type: 'object',
    properties: { login, password, code },
    required: ['login', 'password'],
    additionalProperties: false,
  },
  { name: 'Login' },
);

export const PasswordBody = jsonSchema<{ current_password: string; new_password: string }>(
  {
    type: 'object',
    properties: { current_password: password, new_password: password },
    required: ['current_password', 'new_password'],
    additionalProperties: false,
  },
  { name: 'PasswordChange' },
);

export const PresenceBody = jsonSchema<{ password?: string; code?: string }>(
  {
    type: 'object',
    properties: { password, code },
    additionalProperties: false,
  },
  { name: 'Presence' },
);

export const CodeBody = jsonSchema<{ code: string }>(
  {
    type: 'object',
    properties: { code },
    required: ['code'],
    additionalProperties: false,
  },
  { name: 'OneTimeCode' },
);

export const FactorSetup = jsonSchema<{ secret: string; uri: string }>(
  {
    type: 'object',
    properties: {
      secret: { type: 'string', 'x-sensitive': true, description: 'For authenticator apps, in base32.' },
      uri: { type: 'string', 'x-sensitive': true, description: 'The same as an `otpauth:` URI, for a QR code.' },
    },
    required: ['secret', 'uri'],
    additionalProperties: false,
  },
  { name: 'SecondFactorSetup' },
);

export const FactorState = jsonSchema<{ enabled: boolean; required: boolean; recovery_codes_left: number }>(
  {
    type: 'object',
    properties: {
      enabled: { type: 'boolean', description: 'Logins ask for a one-time code.' },
      required: { type: 'boolean', description: 'Staff rights need it.' },
      recovery_codes_left: { type: 'integer' },
    },
    required: ['enabled', 'required', 'recovery_codes_left'],
    additionalProperties: false,
  },
  { name: 'SecondFactor' },
);

const recovery_codes = {
  type: 'array',
  items: { type: 'string' },
  'x-sensitive': true,
  description: 'Each replaces a one-time code once. Shown only here.',
};

export const RecoveryCodes = jsonSchema<{ recovery_codes: readonly string[] }>(
  {
    type: 'object',
    properties: { recovery_codes },
    required: ['recovery_codes'],
    additionalProperties: false,
  },
  { name: 'RecoveryCodes' },
);

export const ResetBody = jsonSchema<{ login: string }>(
  {
    type: 'object',
    properties: { login: { ...login, 'x-sensitive': true } },
    required: ['login'],
    additionalProperties: false,
  },
  { name: 'PasswordReset' },
);

export const LinkBody = jsonSchema<{ token: string; password: string }>(
  {
    type: 'object',
    properties: {
      token: {
        type: 'string',
        minLength: 1,
        maxLength: 100,
        'x-sensitive': true,
        description: 'The part of the link after `#reset=` or `#invitation=`.',
      },
      password,
    },
    required: ['token', 'password'],
    additionalProperties: false,
  },
  { name: 'LinkPassword' },
);

export const EmailBody = jsonSchema<{ email: string }>(
  {
    type: 'object',
    properties: { email: { type: 'string', minLength: 3, maxLength: 254, 'x-sensitive': true } },
    required: ['email'],
    additionalProperties: false,
  },
  { name: 'EmailChange' },
);

export const EmailLinkBody = jsonSchema<{ token: string }>(
  {
    type: 'object',
    properties: {
      token: { type: 'string', minLength: 1, maxLength: 100, 'x-sensitive': true, description: 'The part of the link after `#email=`.' },
    },
    required: ['token'],
    additionalProperties: false,
  },
  { name: 'EmailConfirmation' },
);

export const InvitationBody = jsonSchema<{ username: string; email: string }>(
  {
    type: 'object',
    properties: {
      username: { type: 'string', minLength: 1, maxLength: 150 },
      email: { type: 'string', minLength: 3, maxLength: 254 },
    },
    required: ['username', 'email'],
    additionalProperties: false,
  },
  { name: 'Invitation' },
);

const user = namedSchema('User', {
  type: 'object',
  properties: {
    id: { type: 'string', description: 'A UUID for users of this application; users of another source have ids of their own.' },
    username: { type: 'string' },
    email: { type: ['string', 'null'] },
    is_active: { type: 'boolean' },
    is_staff: { type: 'boolean', description: 'False while staff rights are withheld: see `second_factor`.' },
    is_superuser: { type: 'boolean' },
  },
  required: ['id', 'username', 'email', 'is_active', 'is_staff', 'is_superuser'],
  additionalProperties: false,
});

export const InvitedUser = jsonSchema<{ user: User }>(
  {
    type: 'object',
    properties: { user },
    required: ['user'],
    additionalProperties: false,
  },
  { name: 'InvitedUser' },
);

export const SessionId = idParams<{ id: string }>({ id: { type: 'string', format: 'uuid' } }, () => accountErrors.session_not_found());

export interface ListedSession {
  readonly id: string;
  readonly current: boolean;
  readonly device: string | null;
  readonly address: string | null;
  readonly second_factor: boolean;
  readonly created_at: string;
  readonly seen_at: string;
  readonly expires_at: string;
}

const time = { type: 'string', format: 'date-time' };

const listedSession = namedSchema('UserSession', {
  type: 'object',
  properties: {
    id: { type: 'string', format: 'uuid' },
    current: { type: 'boolean', description: 'The session that sends this request.' },
    device: { type: ['string', 'null'], description: 'The browser, as it names itself.' },
    address: { type: ['string', 'null'] },
    second_factor: { type: 'boolean' },
    created_at: time,
    seen_at: { ...time, description: 'Time of the last request, to the minute.' },
    expires_at: time,
  },
  required: ['id', 'current', 'device', 'address', 'second_factor', 'created_at', 'seen_at', 'expires_at'],
  additionalProperties: false,
});

export const SessionList = jsonSchema<{ items: readonly ListedSession[] }>(
  {
    type: 'object',
    properties: {
      items: {
        type: 'array',
        items: listedSession,
      },
    },
    required: ['items'],
    additionalProperties: false,
  },
  { name: 'SessionList' },
);

export const SessionsEnded = jsonSchema<{ ended: number }>(
  {
    type: 'object',
    properties: { ended: { type: 'integer' } },
    required: ['ended'],
    additionalProperties: false,
  },
  { name: 'SessionsEnded' },
);

const csrf_token = {
  type: ['string', 'null'],
  description: 'For the header X-CSRF-Token; null when no session authenticated the request.',
};
const second_factor = {
  enum: ['off', 'verified', 'setup_required'],
  description: '`setup_required`: staff rights are withheld until one-time codes are set up with `POST factor`.',
};

export const SessionAnswer = jsonSchema<{ user: User; csrf_token: string | null; second_factor: SecondFactorState }>(
  {
    type: 'object',
    properties: { user, csrf_token, second_factor },
    required: ['user', 'csrf_token', 'second_factor'],
    additionalProperties: false,
  },
  { name: 'Session' },
);

export const FactorAnswer = jsonSchema<{
  user: User;
  csrf_token: string | null;
  second_factor: SecondFactorState;
  recovery_codes: readonly string[];
}>(
  {
    type: 'object',
    properties: { user, csrf_token, second_factor, recovery_codes },
    required: ['user', 'csrf_token', 'second_factor', 'recovery_codes'],
    additionalProperties: false,
  },
  { name: 'SessionWithRecoveryCodes' },
);

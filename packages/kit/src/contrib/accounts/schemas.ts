import type { User } from '../../auth/principal.ts';
import { jsonSchema, namedSchema } from '../../http/json-schema.ts';
import { PASSWORD_LENGTH_MAX } from './password-policy.ts';

const password = { type: 'string', minLength: 1, maxLength: PASSWORD_LENGTH_MAX, format: 'password', 'x-sensitive': true };

export const LoginBody = jsonSchema<{ login: string; password: string }>(
  {
    type: 'object',
    properties: { login: { type: 'string', minLength: 1, maxLength: 254, description: 'User name or e-mail address.' }, password },
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

export const SessionAnswer = jsonSchema<{ user: User; csrf_token: string | null }>(
  {
    type: 'object',
    properties: {
      user: namedSchema('User', {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'A UUID for users of this application; users of another source have ids of their own.' },
          username: { type: 'string' },
          email: { type: ['string', 'null'] },
          is_active: { type: 'boolean' },
          is_staff: { type: 'boolean' },
          is_superuser: { type: 'boolean' },
        },
        required: ['id', 'username', 'email', 'is_active', 'is_staff', 'is_superuser'],
        additionalProperties: false,
      }),
      csrf_token: { type: ['string', 'null'], description: 'For the header X-CSRF-Token; null when no session authenticated the request.' },
    },
    required: ['user', 'csrf_token'],
    additionalProperties: false,
  },
  { name: 'Session' },
);

import { expect, test } from 'vitest';
import { originFault, trustedOriginFault } from './request-origin.ts';

const options = { trustedOrigins: ['https://app.example.com'], secure: true };

test.each([
  [{ host: 'api.example.com' }],
  [{ host: 'api.example.com', origin: 'https://api.example.com' }],
  [{ host: 'api.example.com:443', origin: 'https://api.example.com' }],
  [{ host: 'api.example.com', origin: 'https://api.example.com', 'sec-fetch-site': 'same-origin' }],
  [{ host: 'api.example.com', origin: 'https://app.example.com', 'sec-fetch-site': 'same-site' }],
  [{ host: 'api.example.com', 'sec-fetch-site': 'none' }],
  [{ host: 'localhost:3000', origin: 'http://localhost:3000' }],
])('%j may come from our own pages', (headers) => {
  expect(originFault(headers, options)).toBeNull();
});

test.each([
  [{ host: 'api.example.com', origin: 'https://evil.example' }],
  [{ host: 'api.example.com', origin: 'https://sub.api.example.com' }],
  [{ host: 'api.example.com', origin: 'https://api.example.com:8443' }],
  [{ host: 'api.example.com', origin: 'http://api.example.com' }],
  [{ host: 'api.example.com', origin: 'null' }],
  [{ host: 'api.example.com', origin: '' }],
  [{ host: 'api.example.com', origin: 'https://api.example.com.evil.example' }],
  [{ host: 'api.example.com', origin: 'https://app.example.com/' }],
  [{ origin: 'https://api.example.com' }],
  [{ host: 'api.example.com', 'sec-fetch-site': 'cross-site' }],
  [{ host: 'api.example.com', 'sec-fetch-site': 'same-site' }],
  [{ host: 'api.example.com', origin: 'https://api.example.com', 'sec-fetch-site': 'cross-site' }],
])('%j cannot', (headers) => {
  expect(originFault(headers, options)).not.toBeNull();
});

test('without Secure cookies our own pages may be plain http', () => {
  expect(originFault({ host: '10.0.0.5:3000', origin: 'http://10.0.0.5:3000' }, { trustedOrigins: [], secure: false })).toBeNull();
});

test.each(['app.example.com', 'https://app.example.com/', 'https://app.example.com/path', '*', 'https://*', 'file:///x', 'null'])(
  '%j is refused as a trusted origin',
  (origin) => {
    expect(trustedOriginFault(origin)).toContain('A trusted origin is');
  },
);

test('a scheme and host are accepted as a trusted origin', () => {
  expect(trustedOriginFault('https://app.example.com')).toBeNull();
  expect(trustedOriginFault('http://localhost:5173')).toBeNull();
});

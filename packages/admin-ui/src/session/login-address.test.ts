import { expect, test } from 'vitest';
import { loginAddress } from './login-address.ts';

const here = {
  href: 'https://shop.example/admin/#/users',
  origin: 'https://shop.example',
  pathname: '/admin/',
  hash: '#/users',
} as Location;

test('the login page of the application is told the path to come back to', () => {
  expect(loginAddress('/login?kind=staff', here)).toBe('https://shop.example/login?kind=staff&return_to=%2Fadmin%2F%23%2Fusers');
});

test('a login page on another host is told the whole address', () => {
  expect(loginAddress('https://sso.example/start', here)).toBe(
    'https://sso.example/start?return_to=https%3A%2F%2Fshop.example%2Fadmin%2F%23%2Fusers',
  );
});

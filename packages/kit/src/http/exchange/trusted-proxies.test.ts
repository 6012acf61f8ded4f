import { expect, test } from 'vitest';
import { TrustedProxies } from './trusted-proxies.ts';

test('no proxy is trusted unless named', () => {
  const none = new TrustedProxies();
  expect(none.clientAddress('127.0.0.1', '203.0.113.7')).toBe('127.0.0.1');
  expect(none.clientAddress('::ffff:198.51.100.1', undefined)).toBe('198.51.100.1');
});

test('the address is the first hop from the socket outwards that is not a trusted proxy', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', 'loopback', '2001:db8::1']);
  expect(proxies.clientAddress('127.0.0.1', '203.0.113.7')).toBe('203.0.113.7');
  expect(proxies.clientAddress('::1', '203.0.113.7, 10.1.2.3')).toBe('203.0.113.7');
  expect(proxies.clientAddress('::ffff:10.9.9.9', '1.1.1.1, 203.0.113.7')).toBe('203.0.113.7');
  expect(proxies.clientAddress('2001:db8::1', ['1.1.1.1', '203.0.113.7, 10.0.0.1'])).toBe('203.0.113.7');
  expect(proxies.clientAddress('10.0.0.1', '10.0.0.2, 10.0.0.3')).toBe('10.0.0.2');
});

test('a hop may be written with its port', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8::1']);
  expect(proxies.clientAddress('10.0.0.1', '203.0.113.7:51234')).toBe('203.0.113.7');
  expect(proxies.clientAddress('10.0.0.1', '1.1.1.1, [2001:db8::7]:51234, 10.0.0.2:80')).toBe('2001:db8::7');
  expect(proxies.clientAddress('10.0.0.1', '1.1.1.1, [2001:db8::7], [2001:db8::1]:443')).toBe('2001:db8::7');
  for (const garbage of ['203.0.113.7:', '203.0.113.7:x', '[203.0.113.7', '[]:80', '[x]:80', '203.0.113.7:1234567', '1.2.3:80'])
    expect(proxies.clientAddress('10.0.0.1', garbage)).toBe('10.0.0.1');
});

test('a client cannot choose its address: it is not trusted, or what it wrote is not reached', () => {
  const proxies = new TrustedProxies(['10.0.0.1']);
  expect(proxies.clientAddress('203.0.113.7', '127.0.0.1')).toBe('203.0.113.7');
  expect(proxies.clientAddress('10.0.0.1', '127.0.0.1, 203.0.113.7')).toBe('203.0.113.7');
  expect(proxies.clientAddress('10.0.0.1', '127.0.0.1, garbage')).toBe('10.0.0.1');
  expect(proxies.clientAddress('10.0.0.1', '')).toBe('10.0.0.1');
});

test.each(['10.0.0.0/33', '10.0.0', 'localhost', '10.0.0.1/x', '10.0.0.0/', '10.0.0.0/ ', '10.0.0.0/8/8', '10.0.0.0/0x8', '::1/129', ''])(
  '%j is refused with a sentence',
  (proxy) => {
    expect(() => new TrustedProxies([proxy])).toThrow('neither an IP address');
  },
);

import { describe, expect, test } from 'vitest';
import { readServerAddress } from './server-address.ts';

describe('the URL of a database', () => {
  test.each([
    ['postgres://u:p@a:1/shop', ['postgres://u:p@a:1/shop']],
    [
      'postgres://u:p%2C%40@a:1,b:2,c/shop',
      ['postgres://u:p%2C%40@a:1/shop', 'postgres://u:p%2C%40@b:2/shop', 'postgres://u:p%2C%40@c/shop'],
    ],
    [
      'postgresql://u@[::1]:1,[::2]/shop?sslmode=require',
      ['postgresql://u@[::1]:1/shop?sslmode=require', 'postgresql://u@[::2]/shop?sslmode=require'],
    ],
    ['postgres://u@/shop?host=a,b&port=1,2', ['postgres://u@/shop?host=a&port=1', 'postgres://u@/shop?host=b&port=2']],
    ['postgres://u@/shop?host=a,b&port=7', ['postgres://u@/shop?host=a&port=7', 'postgres://u@/shop?host=b&port=7']],
    ['postgres://u@/shop?host=/var/run/postgresql', ['postgres://u@/shop?host=%2Fvar%2Frun%2Fpostgresql']],
    ['postgres:///shop', ['postgres:///shop']],
    ['postgres://a/shop?options=-c%20search_path%3Dx', ['postgres://a/shop?options=-c%20search_path%3Dx']],
  ])('%s is tried host by host', (url, hosts) => {
    expect(readServerAddress(url).hosts).toEqual(hosts);
  });

  test('says what kind of server it wants, and how long to wait, as in libpq', () => {
    const url =
      'postgres://a,b/shop?target_session_attrs=primary&load_balance_hosts=random&connect_timeout=7&keepalives_idle=30&sslmode=require';
    expect(readServerAddress(url)).toEqual({
      hosts: ['postgres://a/shop?sslmode=require', 'postgres://b/shop?sslmode=require'],
      wanted: 'primary',
      isBalanced: true,
      connectMsMax: 7000,
      keepAliveMs: 30_000,
    });
    expect(readServerAddress('postgres://a/shop?keepalives=0&connect_timeout=0')).toMatchObject({
      keepAliveMs: 0,
      connectMsMax: undefined,
    });
  });

  test.each([
    [
      'postgres://a/shop?target_session_attrs=read_write',
      /target_session_attrs=read_write; use one of any, .*Did you mean "read-write"\?$/,
    ],
    ['postgres://a/shop?load_balance_hosts=on', /load_balance_hosts=on; use one of disable, random/],
    ['postgres://a/shop?connect_timeout=5s', /connect_timeout=5s; use a number of seconds/],
    ['postgres://u@/shop?host=a,b&port=1,2,3', /2 hosts and 3 ports: give one port for all of them, or one for each/],
    ['postgres://u:s3cr3t@a:one,b/shop', /cannot be read.*host1:5432,host2:5432/],
    ['postgres://u:s3/cr3t@a/shop', /cannot be read.*write \/ as %2F/],
  ])('%s is rejected with what to do, without the password', (url, message) => {
    let said = '';
    try {
      readServerAddress(url);
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toMatch(message);
    expect(said).not.toContain('cr3t');
  });
});

/**
 * Documents that sops 3.8.1 wrote, in YAML and JSON, with the identity they are for. From the tests of sops-age by David Humphrey (MIT),
 * https://github.com/humphd/sops-age, without two of their three recipients. The identity is public and opens nothing else.
 */
export const SOPS_IDENTITY = 'AGE-SECRET-KEY-1QXRVEJH9S4NQU0FPD6V79ESZQ8S6PXH3L8V40EVPTHFH6KNKD4DQ7SKC4P';

export const SOPS_VALUES = {
  secret: 'this is a secret',
  string: 'string',
  int: 7,
  float: 3.14,
  boolean: true,
  complex: { value: 'this is a secret', array: ['one', 'two', 'three'] },
};

export const SOPS_YAML = `secret: ENC[AES256_GCM,data:ME9a8+qqBCwXn0eqF010rw==,iv:uhdG6vcUoywenIi6EDaXDvyhWb/2Lv6kL4MiLdLb/kU=,tag:llVdEID432oMefr5T2tl2g==,type:str]
string: ENC[AES256_GCM,data:LNzAFGse,iv:g4HM7I6aFegw57M+BOiVAV5WncBM6MHW2UECAnFkjRo=,tag:PTFT1DrCt9SiLlspc14oBQ==,type:str]
int: ENC[AES256_GCM,data:Ag==,iv:7mZlIiottanvOoufMaIRtOYNmq0yr3E0HBbChYkB7sc=,tag:FSHs1hYNQEkBAFCRYbcEUw==,type:int]
float: ENC[AES256_GCM,data:xXzcgA==,iv:nfQv47XSb+3zRPL7hZPlxtPcfhdHfXDVVf28/DpoaZ4=,tag:1S0vEap4M1RvG61FhDOUmA==,type:float]
boolean: ENC[AES256_GCM,data:qw4M9Q==,iv:6nWrJg5eHsgOpxQsTX3Z3egkRFKeVi5UztF3ccd6Nqk=,tag:n7Dnj1JtcCKBr1JTAzhhpA==,type:bool]
complex:
  value: ENC[AES256_GCM,data:pMPbf0Sq8YbouaBiYGmbbA==,iv:KQQkVbKqwAq9ijals9CiA/WYrv1qTvLOTq3lM7QeCQI=,tag:2S1rFDGNpu8vIDcOOW88AA==,type:str]
  array:
    - ENC[AES256_GCM,data:dDBg,iv:yQOKyyjy49vtuYeAGmwug6Bgj+r/nGAAq028IXGswWw=,tag:Uk5/fV0k2ICcHPY7gJfMNQ==,type:str]
    - ENC[AES256_GCM,data:SBYe,iv:bAQvkNXxAJs+s5BTa1/pBhoHSdM2b7a9PsV7YDAv2+8=,tag:AI0LFWDSe8LPl44vZlYTDg==,type:str]
    - ENC[AES256_GCM,data:U5QgThs=,iv:tDwNdnTOGTRCqoVmD/csblAftp33T/U4u+XITLmp0F4=,tag:jPJGfNYoG14OHkJEKWpDcA==,type:str]
sops:
  kms: []
  gcp_kms: []
  azure_kv: []
  hc_vault: []
  age:
    - recipient: age1je6kjhzuhdjy3fqptpttxjh5k8q46vygzlgtpuq3030c947pc5tqz9dqvr
      enc: |
        -----BEGIN AGE ENCRYPTED FILE-----
        YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBEaC9kMkV4d3FCWHlKN0Iz
        dkxWVmwvSmpuckN5Uk56Tjd5Wm04NitDeVhvCm5sb21XT0taNnY2QlRXN3hXc1No
        UWxQWHFZZ0hBb1p3NkpFdCtzNllkRDAKLS0tIGdLZ1pOUFFPYURLK0VqMFJUYndn
        YVB0U2wwQ21yTmc3Vk5BcjdXQ200U3MKY1GCVhawMSYQnY+eOo9ke2VqL8RTmZ0o
        iejCbKsOPtPfT14MX5TLORf8EY9QOgbCJRwckqyRhpErLR0SKQiaFA==
        -----END AGE ENCRYPTED FILE-----
  lastmodified: "2024-03-25T22:08:10Z"
  mac: ENC[AES256_GCM,data:VkH/rv9tvy2qLc9IDt83tu1WSy4JhI4BNY40xmlIclT5c/+nThdSoc8HBBj75YSVFCrtdORHKZGiw+O32vTCiuAz43Cv82aklh6mr2WmSliqi66Db3170C6hcUaMyjQ42CoEUb5CTDtzICo9de2hBOaVXHoqCOhfDblnn+YuG3g=,iv:tYmXV04d324Jb1Hg5XCmfMtn6yKl4dZEBjDHHSn5Fz4=,tag:Ohp2Jqo4f862lLFdE3bhzg==,type:str]
  pgp: []
  unencrypted_suffix: _unencrypted
  version: 3.8.1
`;

export const SOPS_JSON = `{
  "secret": "ENC[AES256_GCM,data:s0/KBsFec29XLrGbAnLiNA==,iv:k5oP3kb8tTbZaL3PxbFWN8ToOb8vfv2b1EuPz1LbmYU=,tag:n1RlTSRKGgoB909D4I3n+A==,type:str]",
  "string": "ENC[AES256_GCM,data:aJs3s1nk,iv:aoqpnybhdwOy7DpWrZN4j/cuJajploVuVHWY90+TN+4=,tag:clb0yzj9gvJSvKmGFhlk5g==,type:str]",
  "int": "ENC[AES256_GCM,data:tw==,iv:EfxGN7bBlnxjmwfqgWSJzjx6tyY67Tu62QcAzYp8R7s=,tag:iNCbcJiR9wXRJsRB/EtxRQ==,type:float]",
  "float": "ENC[AES256_GCM,data:Y43s8Q==,iv:4K46qNKCVREzln4gIF6+8wxevGsJOE6BP8E6ETmmGQM=,tag:FT0x9dR+0M8Dziv3wbSSYw==,type:float]",
  "boolean": "ENC[AES256_GCM,data:v3uLjw==,iv:XgmPovz5l2kboO+k8THMXoaB0/BYHahAqKp/tu7N4qc=,tag:dbV1aANN0do7n3TZsRTdmA==,type:bool]",
  "complex": {
    "value": "ENC[AES256_GCM,data:ub5SNpHF6BJ2hH0m3dxp7Q==,iv:VE7cCLTy+730qTY089K8w2G7ANhVqC/m6LI1SjxQja0=,tag:c9yun105kA478EzyzOlKUw==,type:str]",
    "array": [
      "ENC[AES256_GCM,data:NzVC,iv:uxfOz2L4/uH0KYyrOhd/Ki+xvBiSCe+ZR25HcZB+HXU=,tag:5w0FkarcFXEjU2+MyuKXgQ==,type:str]",
      "ENC[AES256_GCM,data:Dsgw,iv:IU6EGLHrAe58vSqWBI7J2zEf+m5iiwERNcuFvhHkTyE=,tag:yHHcXI443XdBrkL9KUPU9w==,type:str]",
      "ENC[AES256_GCM,data:ZnzB2XU=,iv:xorfY0yMH3y8zCcXi9ShoqVIWyXSoXRIcy4Dd6NmM7M=,tag:CJm51zzzmHhymF+UnplgwA==,type:str]"
    ]
  },
  "sops": {
    "kms": null,
    "gcp_kms": null,
    "azure_kv": null,
    "hc_vault": null,
    "age": [
      {
        "recipient": "age1je6kjhzuhdjy3fqptpttxjh5k8q46vygzlgtpuq3030c947pc5tqz9dqvr",
        "enc": "-----BEGIN AGE ENCRYPTED FILE-----\\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBvNmhIQkw4aFdpWUR5eVRO\\nOVlZZ1htUGJWUHp3MnBVamxxTERmc1M0alJvCm5KSVNqWUJiT0V0TElvRVJsdVVW\\nR2FvTEU1Rmw0bzdrYWFXQzQrUkJseHcKLS0tIHh1TjRSK2NMYjNHU004MXpWTHRJ\\nWW83TmsxTU5MZkp2VExpcmhhWkNLMkEK33Somr22bQHbxPwIdv1Fjft5hKP5ZYy6\\nmsBufbrcR3lV43k2lMI5fyKZA7G7PlVcHruIkfH9mI+NGQHDb3rscQ==\\n-----END AGE ENCRYPTED FILE-----\\n"
      }
    ],
    "lastmodified": "2024-03-25T21:55:35Z",
    "mac": "ENC[AES256_GCM,data:KzBF4aA4+qF2G6wRY0QrKC3Qn8FHHNhDCefz31T8zUtbjPOwt/+G4dGAznxyieFuKCXjxpuUkZ9D+EnE993fQiPh+psFo8IjE8txxTrIcAQTqR9jtBeSF7RtkZNPy28uTyqu0kpjEEzQYJ67Pu+GWYkoCGnCaEzn+++Ji+fLjhY=,iv:gE5PMg2oG26XJgP3h+Yy+WQg6akGuXRc3bDvclRm+P8=,tag:558NOfo1asyETDKFe1dp/g==,type:str]",
    "pgp": null,
    "unencrypted_suffix": "_unencrypted",
    "version": "3.8.1"
  }
}
`;

"""Where datasets lie: a local path, or s3:// on the file-backed S3 server of the tests, or s3+ddb:// with its DynamoDB beside."""

import os
import time


def storage_options(uri):
    """Options for the official engines, from the environment that test/services sets; None for a local path."""
    if not str(uri).startswith(("s3://", "s3+ddb://")):
        return None
    beside = {"dynamodb_endpoint": os.environ["AWS_ENDPOINT_URL_DYNAMODB"]} if uri.startswith("s3+ddb://") else {}
    return beside | {"aws_endpoint": os.environ["AWS_ENDPOINT_URL_S3"], "allow_http": "true", "aws_virtual_hosted_style_request": "false",
            "region": os.environ["AWS_REGION"], "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"]}


def folder(uri):
    """The local folder that holds the files of uri."""
    if uri.startswith(("s3://", "s3+ddb://")):
        return os.path.join(os.environ["LANCEKEEPER_TEST_S3_DIR"], uri.partition("?")[0].partition("://")[2])
    return uri.removeprefix("file://")


def files(uri):
    """All files below uri: {path relative to it: (size, age in days)}."""
    top, out = folder(uri), {}
    for at, _, names in os.walk(top):
        for name in names:
            path = os.path.join(at, name)
            s = os.stat(path)
            out[os.path.relpath(path, top)] = (s.st_size, (time.time() - s.st_mtime) / 86400)
    return out


def age(uri, days, only=None):
    """Make the files below uri (or those alone that are named) look days old."""
    then = time.time() - days * 86400
    for path in only if only is not None else files(uri):
        os.utime(os.path.join(folder(uri), path), (then, then))


def tables(uri):
    """The dataset itself, or the *.lance datasets of a root."""
    if os.path.isdir(os.path.join(folder(uri), "_versions")):
        return [uri]
    return sorted(f"{uri}/{name}" for name in os.listdir(folder(uri)) if name.endswith(".lance"))

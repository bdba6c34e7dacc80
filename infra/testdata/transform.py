"""Prints template.yaml as CloudFormation sees it after the SAM transform. No network."""

import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

import boto3
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

with open(sys.argv[1]) as file:
    template = yaml_parse(file.read())
values = {name: p.get("Default", p.get("AllowedValues", ["s3://bucket/db"])[0]) for name, p in template["Parameters"].items()}
template["Globals"]["Function"]["CodeUri"] = {"Bucket": "code", "Key": "code.zip"}
session = boto3.Session(region_name="us-east-1")
print(json.dumps(Translator({}, Parser(), None, session).translate(template, values)))
